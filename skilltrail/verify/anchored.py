"""Rules at level *anchored*: are these logs the ones that the commits hold?

A commit's hash covers its event and all before it, and is computed here from the logs alone. So
a ref whose tip has the computed hash holds exactly these logs; one with every hash made right
after a change parts from the ref at the changed event. What hangs on the refs is read object by
object, each held against its own name, with replacements switched off.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from skilltrail.core.errors import FaultError
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.erasure import ERASED
from skilltrail.verify.chain import UNREPLACED, Chain, Held
from skilltrail.verify.evidence import OPENED, Evidence
from skilltrail.verify.result import Check, Fault, Level
from skilltrail.verify.rules.evaluations import TOLD

REPLACED = "refs/replace/"
EVALUATING = (OPENED, "rollouts.scored", *TOLD, ERASED)
_HASH = re.compile(r"[0-9a-f]{16,64}")
_CHUNK = 2_000  # objects read at a time


def training_commits(evidence: Evidence) -> Check:
    """A run's ref holds the training log, and nothing on top but evaluations."""
    chain = evidence.chain
    of = chain.trained
    if not any(ref.startswith(RUNS) for ref in chain.refs):
        return Check(0, of, "no refs/evolution are here (fetch them, or `skilltrail rebuild`)")
    held = chain.best(of, RUNS)
    if held is None:
        return Check(0, of, "no run here holds this log's first event")
    if held.shared < of and held.on_top:
        return Check(held.shared, of, "", (_parted(chain, held),))
    if held.shared < of:
        return Check(
            held.shared, of, f"{held.ref} holds the first {held.shared} of {of} events"
        )
    faults: list[Fault] = []
    for one in () if evidence.allow_unfinished else chain.held:
        faults += _on_top(chain, one) if one.shared >= of else ()
    return Check(of, of, f"{held.ref}, commit {chain.shas[of - 1][:12]}", tuple(faults))


def evaluation_commits(evidence: Evidence) -> Check | None:
    """A ref holds the evaluation log."""
    chain = evidence.chain
    all, of = len(chain.shas), len(chain.shas) - chain.trained
    if not of:
        return None
    held = chain.best(all, RUNS, EVALUATIONS)
    if held is None or held.shared < chain.trained:
        return Check(0, of, "no ref holds what it continues")
    if held.shared == all:
        return Check(of, of, f"{held.ref}, commit {chain.shas[-1][:12]}")
    done = held.shared - chain.trained
    if held.on_top:
        return Check(done, of, "", (_parted(chain, held),))
    return Check(done, of, f"{held.ref} holds {done} of its {of} events")


def kept_commits(evidence: Evidence) -> Check | None:
    """Refs hold every evaluation of this run that is kept here."""
    chain, kept = evidence.chain, evidence.kept
    held = {sha for shas in chain.histories.values() for sha in shas}
    shas = [sha for report in kept for sha in chain.commits_after(report.events)]
    return Check(sum(sha in held for sha in shas), len(shas)) if kept else None


def versions(evidence: Evidence) -> Check:
    """Each version's ref names the commit that made it, and there are no others."""
    chain = evidence.chain
    of, held = len(chain.versions), chain.best(chain.trained, RUNS)
    if held is None or held.shared < chain.trained:
        return Check(0, of, "no run here holds this log")
    prefix = f"{VERSIONS}{held.ref.removeprefix(RUNS)}/v"
    found = {r.removeprefix(prefix): s for r, s in chain.refs.items() if r.startswith(prefix)}
    right = {str(number): sha for number, sha in chain.versions.items()}
    faults = tuple(
        _fault(prefix + number, "commit", sha, right.get(number, "no such version"))
        for number, sha in found.items()
        if right.get(number) != sha and "/" not in number
    )
    return Check(len(found.keys() & right.keys()), of, "", faults)


def objects(evidence: Evidence) -> Check:
    """All that hangs on the refs of this run is there, and is what its name says."""
    chain = evidence.chain
    held = [one for one in chain.held if one.shared >= chain.trained]
    names = [one.ref for one in held]
    names += [
        ref
        for one in held
        for ref in chain.refs
        if ref.startswith(f"{VERSIONS}{one.ref.removeprefix(RUNS)}/v")
    ]
    if not names:
        return Check(0, 1, "no ref here holds this log")
    tips = list(dict.fromkeys(chain.refs[name] for name in names))
    try:
        listed = chain.git.run(UNREPLACED, "rev-list", "--objects", *tips, "--")
        ids = [line.split(b" ")[0].decode() for line in listed.splitlines()]
        faults = [fault for at in range(0, len(ids), _CHUNK)
                  for fault in _wrong(chain.git, ids[at : at + _CHUNK])]  # fmt: skip
    except GitError as error:
        return Check(0, 1, "", (_fault(held[0].ref, "objects", error.found, "all of them"),))
    shown = chain.git.refs(REPLACED)
    faults += [
        _fault(REPLACED + id, "object", shown[REPLACED + id], id)
        for id in ids
        if REPLACED + id in shown
    ]
    faults += [
        _fault(one.ref, "object", chain.refs[one.ref], f"commit {chain.histories[one.ref][0]}")
        for one in held
        if chain.refs[one.ref] != chain.histories[one.ref][0]
    ]
    commits = len(set(chain.shas) & set(ids))
    least = max(one.shared for one in held)
    note = "" if commits >= least else f"the history is cut: {commits} of {least} commits"
    return Check(len(ids), len(ids) + least - commits, note, tuple(faults))


def published(evidence: Evidence) -> Check | None:
    """The commit hash or the signed tag that was published is one of this chain.

    Raises:
        GitError: it is neither a hash of at least 16 digits nor a tag of this repository.
    """
    chain, anchor = evidence.chain, evidence.anchor
    if anchor is None:
        return None
    of, note = len(chain.shas), "the hash"
    if _HASH.fullmatch(anchor):
        sha = anchor
    else:
        sha, note = _tagged(chain.git, anchor)
    at = next((n for n, one in enumerate(chain.shas, 1) if one.startswith(sha)), None)
    if at is None:
        return Check(of, of, note, (_fault(anchor, "commit", chain.shas[-1], sha),))
    if not note:
        return Check(0, of, f"{anchor} has no good signature here")
    return Check(at, of, f"{note} of event {chain.events[at - 1].seq}")


def _tagged(git: Git, name: str) -> tuple[str, str]:
    """Return the commit of a tag, and words on its signature ("" = no good one)."""
    ref = f"refs/tags/{name}"
    sha = git.resolve(ref)
    try:
        git.here("verify-tag", ref)
    except GitError:
        return sha, ""
    return sha, "the signed tag"


def _parted(chain: Chain, held: Held) -> Fault:
    """Return the fault of a log that parts from the ref which holds most of it."""
    event = chain.events[held.shared]
    try:
        found = chain.event(held.on_top[0]).line.decode()
    except (FaultError, GitError) as error:
        found = error.found
    what = f"event held by {held.ref}"
    return Fault.of(event, what, event.line.decode(), found, Level.ANCHORED)


def _on_top(chain: Chain, held: Held) -> Iterator[Fault]:
    """Yield a fault where what follows the logs on a ref is no evaluation that goes on."""
    known = chain.events[: held.shared]
    try:
        more = [chain.event(sha) for sha in held.on_top]
        right = list(commits_of([*known, *more], chain.git.object_format()))[held.shared :]
        wrong = [event.type for event in more if event.type not in EVALUATING]
    except (FaultError, GitError) as error:
        yield _fault(held.ref, "commits on top", error.found, "events of an evaluation")
        return
    last = known[-1]
    for event, sha, commit in zip(more, held.on_top, right, strict=True):
        if wrong or event.prev != last.id or event.seq != last.seq + 1 or commit.sha != sha:
            what = f"commit {sha[:12]} on top"
            yield _fault(held.ref, what, event.name, "an evaluation that continues this")
            return
        last = event


def _wrong(git: Git, ids: Sequence[str]) -> Iterator[Fault]:
    """Yield a fault for each object whose content is not the one of its name."""
    asked = "".join(f"{id}\n" for id in ids).encode()
    out, at = git.run(UNREPLACED, "cat-file", "--batch", stdin=asked), 0
    for id in ids:
        end = out.index(b"\n", at)
        _, kind, size = (out[at:end] + b" ? 0").split(b" ")[:3]
        if not size.isdigit():
            yield _fault("object", id, "missing", "there")
            at = end + 1
            continue
        content = out[end + 1 : end + 1 + int(size)]
        digest = hashlib.new("sha1" if len(id) == 40 else "sha256", usedforsecurity=False)
        digest.update(kind + b" " + size + b"\0" + content)
        if digest.hexdigest() != id:
            yield _fault("object", id, digest.hexdigest(), id)
        at = end + 2 + int(size)


def _fault(where: str, what: str, found: object, right: object) -> Fault:
    return Fault(None, where, what, found, right, Level.ANCHORED)
