// A page opened from disk may not start a worker, which the search of this site is: there the
// worker's script runs in a hidden frame, and is spoken to in the same way.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.url = new URL(url, document.baseURI);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      this.tell = inside.postMessage.bind(inside);
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...urls) => { for (const one of urls) await this.load(one); };
      this.ready = this.load(this.url);
    }

    load(url) {
      const script = this.frame.contentDocument.createElement("script");
      script.src = new URL(url, this.url);
      return new Promise((done, fail) => {
        script.onload = done;
        script.onerror = () => fail(new Error(`${script.src} cannot be read`));
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) { this.ready.then(() => this.tell(data, "*")); }

    terminate() { this.frame.remove(); }
  };
}
