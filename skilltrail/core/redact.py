"""Take secrets out of anything before it is shown, logged or stored.

Three nets, always cast before clipping: the values of environment variables that hold keys (as
they are, and in base64, hexadecimal and percent signs), fields whose name says that they hold
one, and text that has a key's shape. Nothing of a secret stays, neither its first nor its last
letters. Numbers stay, so `token_budget: 5` is readable.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "[hidden]"

_NAME_PARTS = (
    "key", "token", "secret", "password", "passwd", "passphrase", "credential",
    "connection_string", "connectionstring", "_pwd", "bearer", "authorization", "cookie",
)  # fmt: skip
# Names that hold a word of the list above and never a secret.
_PLAIN_NAMES = (
    "key", "keys", "key_env", "reply_key", "fact_key", "sort_keys", "tokens", "keyword",
    "keywords", "monkey", "tokenizer", "stop_token",
)  # fmt: skip
_SHAPES = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{16,}                           # OpenAI, Anthropic and look-alikes
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}        # GitHub
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}                        # GitLab
    | \bhf_[A-Za-z0-9]{20,}                             # Hugging Face
    | \bxox[abposr]-[A-Za-z0-9-]{10,}                   # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                     # AWS
    | \bAIza[A-Za-z0-9_-]{30,}                          # Google
    | \b(?:gsk_|r8_|xai-|nvapi-|pplx-)[A-Za-z0-9_-]{24,}  # Groq, xAI and other hosts
    | \bdapi[0-9a-f]{32}\b                              # Databricks
    | \bya29\.[A-Za-z0-9_-]{16,}                        # Google, as a bearer
    | \b(?:npm_|pypi-)[A-Za-z0-9_-]{30,}
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}            # Stripe
    | \b(?:SG\.|hvs\.|dckr_pat_|lin_api_|dop_v1_|shpat_|tvly-|GOCSPX-|AGE-SECRET-KEY-)
        [A-Za-z0-9._-]{20,}                             # hosts and tools of many kinds
    | (?<=://hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9_/-]{16,}
    | (?<=/api/webhooks/)\d+/[A-Za-z0-9_-]{24,}         # Discord: who has the address may write
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/:@]*:[^\s/@]+(?=@)                   # user:password@ in a URL
    | (?<=://)[A-Za-z0-9_-]{20,}(?=@)                   # token@ in a URL
    | (?i:(?<=AccountKey=)|(?<=SharedAccessKey=)|(?<=Password=)|(?<=Pwd=))
        (?!\{\{|\$[{(]|<|[/~.]|[A-Za-z]:[\\/])[^;\s"']+  # PWD=/folder is none
    """,
    re.VERBOSE | re.DOTALL,
)
# Every text with such a shape holds one of these, and most texts are quickly seen to hold none.
_SHAPE_MARKS = (
    "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "xox",
    "AKIA", "ASIA", "AIza", "eyJ", "PRIVATE KEY", "://", "=", "gsk_", "r8_", "xai-", "nvapi-",
    "pplx-", "dapi", "ya29.", "npm_", "pypi-", "k_live_", "k_test_",
    "SG.", "hvs.", "dckr_", "lin_api_", "dop_v1_", "shpat_", "tvly-", "GOCSPX-", "AGE-",
    "webhooks",
)  # fmt: skip
# Programs whose arguments hold a password, and the flag before it. A variable or a placeholder
# in its place stays.
_WORDS = r"(?:[^\n\\|]|\\[\s\S]){0,200}?\s"
_COMMAND = re.compile(
    rf"""(?x)
    (?P<name> \b(?: curl{_WORDS}(?:-[a-zA-Z]{{0,8}}[uU]|--(?:proxy-)?user)
        | https?{_WORDS}(?:-a|--auth) | (?:sshpass|7z\w?){_WORDS}-p | (?:un)?zip{_WORDS}-P
        | (?:mysql|mariadb|mongo)\w{{0,20}}{_WORDS}-p(?=\S)
        | \w+\s+login{_WORDS}-p | redis-cli{_WORDS}-a | ldap\w{{1,20}}{_WORDS}-w
        | smbclient{_WORDS}-U ) [\s=]{{0,4}} (?=[^\s$<{{-]) )
    (?: "[^"$\n]+" | '[^'\n]+' | [^\s"']+ )"""
)
_COMMAND_MARKS = (
    "curl", "http", "sshpass", "7z", "zip", "mysql", "mariadb", "mongo", "login", "redis-cli",
    "ldap", "smbclient",
)  # fmt: skip
_QUERY = re.compile(
    r"""(?ix)
    (?P<name> [?&;] (?:[a-z0-9_.-]*[_.-])? (?:api[_-]?key|key|sig|signature|token|secret
        |password|passwd|pwd|auth|authorization|credential) =)
    [^\s&\#"'<>]{8,}"""
)
_AUTH_HEADER = re.compile(
    r"""(?ix)
    (?P<name> \b (?: (?:bearer|basic)\s+ | authorization["']?\s*[:=]\s*["']?\w+\s+
        | cookie["']?\s*[:=]\s*["']?[\w.-]{1,64}= ) (?:\\{0,8}["'])? )
    [A-Za-z0-9._~+/=%-]{8,}"""
)
# What stands in a secret's place and is none: a word about it, a type, a placeholder, a
# variable, the start of a sentence.
_IN_ITS_PLACE = r"""(?: (?: ""|''
    | ["']? (?: required|optional|missing|none|null|nil|undefined|true|false|hidden|redacted
        |\[hidden\]|masked|omitted|unset|unused|needed|expired|invalid|incorrect|wrong|unknown
        |empty|absent|present|valid|provided|ignored|disabled|enabled|supported|deprecated
        |encrypted|hashed|generated|str(?:ing)?|text|bool(?:ean)?|int(?:eger)?|number|bytes
        |object|any|secretstr|optional\[\w+\]|your[_-][a-z_-]{1,40} ) ["']?
    | (?:the|an?|is|are|must|should|may|can|will|see|use|your|from|to|for|this|that|it|not|no|if
        |when|which|where|only|one)\s+[a-z(<`]\S* )
        (?= [\s,;&)}\]] | \.?(?:\s|\Z) )
    | ["']? (?: \$[{(] | (?-i: \$[A-Z_][A-Z0-9_]*(?=["'\s,;]|\Z) | %[A-Z_]+%)
        | \{\{ | <[^<>\n]{1,60}>
        | os\.(?:environ|getenv)\b | process\.env\b | getenv\b | env\[ ) )"""
_ASSIGNED = re.compile(
    rf"""(?ix)
    (?P<name> (?<![a-z0-9_.-]) ["']? [a-z0-9_.-]* (?:api[_-]?key|secret|passwor[dt]|passwd
        |pass[\ _-]?phrase|passcode|[_.-]pass|[_.-]pwd|private[_-]?key
        |(?:access|auth|bot|bearer|hub|lab|refresh|session)[_-]?token|x-api-key
        |kennwort|mot\ de\ passe|contrase[ñn]a|senha|parola|wachtwoord|hasło|heslo|şifre
        |lösenord|adgangskode|kata\ sandi|mật\ khẩu|пароль|비밀번호|密[码碼]|パスワード)
        [a-z0-9_-]{{0,64}} \\{{0,8}}["']? \s{{0,8}} [:=：] \s{{0,8}} )
    (?! {_IN_ITS_PLACE} )
    (?P<value> (?P<q> \\{{1,8}}["'] | "{{3}} ) (?: [^\n]{{0,400}}? (?P=q) | [^\n]* )
        | [|>][+-]? [ ]* (?:\n[ \t]+[^\n]+)+
        | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | ["'][^\n]* | [^\s,;&"'}}]+ )
    """
)
# Where a name says less by itself: a test may `pass`, and a phrase has several words.
_BESIDE = re.compile(
    rf"""(?ix)
    (?P<name> (?<![\w.-]) (?: (?:pass|pwd)=(?=\S) | pass\s?=\s?(?=["'])
        | pwd \s? [:=] \s? (?! [/~.$] | [a-z]:[\\/] )
        | (?:user(?:name)?|login|account|host)\b [^\n]{{0,60}}? (?:[\s,;/|]|\n\s*)
            pass \s? [:=] \s?
        | (?-i:[Pp]ass) \s? [:=] \s? (?=[^\s\d_]{{0,64}}\d) (?=[^\sa-z_]{{0,64}}[a-z])
        | login \s+ \S{{1,64}} \s+ password \s+
        | cred(?:ential)?s? \s? [:=] \s? [\w.@-]{{1,64}}[:/] ) )
    (?! {_IN_ITS_PLACE}
        | (?:yes|no|on|off|ok|pass(?:ed)?|fail(?:ed)?|skip(?:ped)?|[\d.,/%]+)\b )
    (?: "[^"\n]{{1,200}}" | '[^'\n]{{1,200}}' | [^\s"',;&]{{4,200}} )
    | (?P<phrase> \bpass[\ _-]?phrase \s? [:=] \s? ) [a-z]{{3,12}} (?:\ [a-z]{{3,12}}){{2,23}}
    | (?P<seed> \b(?:seed|recovery|mnemonic|wallet)\b
        (?: [^\n:=]{{0,20}}[:=] | [ ](?:phrase|words)\b[^\n]{{0,12}}? ) \s? ["']? )
        [a-z]{{3,8}} (?:\s[a-z]{{3,8}}){{11,23}}
    | (?P<quoted_one> \bpass(?:word|phrase|code|wd)\s )
        (?: "(?=[^"\n]{{0,99}}[\s\d!@\#$%^&*+=~])(?!{_IN_ITS_PLACE})[^"\n]{{4,99}}"
        | [“«„](?=[^”»“\n]{{0,99}}[\s\d])[^”»“\n]{{4,99}}[”»“]
        | '(?=[^'\n]{{0,99}}[\s\d!@\#$%^&*+=~])(?!{_IN_ITS_PLACE})[^'\n]{{4,99}}' )
    | (?P<code> \b(?:recovery|backup|2fa|verification|security)[\s-]codes?
        (?:\s?[:=]|\sis)? \s ) (?=[a-z-]{{0,9}}\d)[a-z\d]{{3,}}[a-z\d-]{{3,}}
    | (?P<marked> <[\w:]{{0,20}}(?:password|passwd|secret|api_?key)>
        | (?:key|name)= ["'][\w.-]{{0,20}}(?:password|secret|api_?key)["']\s+value=["'] )
        [^<>"'\n]{{4,200}} (?=</|["'])
    | (?P<cell> \|\s?(?:password|passwd|secret|api\s?key)\s?\|\s? )
        (?=[^|\s\d]{{0,64}}\d)[^|\s]{{4,99}} (?=\s?\|)
    | (?P<told> (?:密[码碼]|口令)[是为為:：]\s? | 비밀번호[는은가]\s | パスワード[はが]\s? )
        [!-~]{{4,}}
    """
)
_FLAG = re.compile(
    r"(?i)(?P<name>(?<!\S)--?(?:[a-z]+[_-]){0,4}(?:api-?key|secret|password|token)[\s=]+)[^\s-]\S*"
)
# In a sentence. What follows is taken for a secret where it is quoted, holds a digit or a sign,
# or ends the sentence and is no word that such a sentence ends with.
_IS = r"""(?:\s+(?:for|of|to|on|at|in)\s+(?:\S{1,40}\s+){1,4}?|\s+)
    (?:is|ist|was|are|were|being|equals|becomes?|->|→
        |(?:(?:is|was|now)\s+)?(?:(?:re)?set|changed)\s+to)
    \s*:?\s+(?:(?:now|still|just|simply)\s+)?"""
_NO_SECRET = r"""(?:\w+(?:ed|ing|ly|able|ible|atory)|above|absent|active|below|blank|both|case
    |complex|correct|crucial|different|easy|empty|equal|essential|expire|false|fine|gone|good
    |hard|here|identical|inactive|incorrect|invalid|kept|known|local|long|lost|made|missing
    |none|null|ok|old|only|optional|part|plain|private|public|random|ready|right|safe|same
    |secret|secure|sensitive|sent|set|short|simple|special|stale|strong|there|true|two|unique
    |unknown|valid|weak|what|wrong)"""
_SAID = re.compile(
    rf"""(?ix)
    (?P<name> \b(?:pass(?:wor[dt]s?|wd|phrase|codes?)|pwd|(?:my|your|his|her|the\ db)\ pass)
        (?: {_IS} | \s+(?=[^\s\d]{{0,64}}\d)(?=\S{{0,64}}[a-z]) ) )
    (?: ["“„][^"”\n]{{3,200}}["”] | '[^'\n]{{3,200}}' | `[^`\n]{{3,200}}`
        | (?=[^\s\d!@\#$%^&*_+=~]{{0,64}}[\d!@\#$%^&*_+=~])[^\s"'`]{{4,}}
        | (?!{_NO_SECRET}\b) [^\W\d_]{{4,64}}
            (?=,|\s+(?:and|but|so|or|until|now|then|please|thanks)\b|[.!;)]?\s*(?:\n|\Z)) )
    | (?P<of_key> \b(?:(?:api|secret|access|private|license)[\s_-]?keys?|secrets?|tokens?
        |credentials?) {_IS} ["'`]? )
        (?=[^\s\d]{{0,64}}\d)(?=[^\sa-z]{{0,64}}[a-z]) [^\s"'`]{{8,}}
    | (?P<of_pin> \bpin(?:\s(?:code|number))? {_IS} ["'`]? ) \d{{4,8}}\b"""
)
_MIN_VALUE_CHARS = 4  # a shorter value would be hidden in ordinary words
_MIN_SURE_CHARS = 8  # in data, where `DEBUG_TOKEN=none` shall not hide every `none`


def holds_secret(name: str) -> bool:
    """Return whether a field or variable of this name usually holds a secret."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
    if plain in _PLAIN_NAMES or plain.endswith(("_tokens", "_token_count", "key_env")):
        return False
    return any(part in plain for part in _NAME_PARTS)


def secret_values(environ: Mapping[str, str], names: Iterable[str] = ()) -> frozenset[str]:
    """Return the values to hide: of variables named in `names` or named like a secret."""
    asked = set(names)
    return frozenset(
        value.strip()
        for name, value in environ.items()
        if (name in asked or holds_secret(name)) and len(value.strip()) >= _MIN_VALUE_CHARS
    )


def forms_of(value: str) -> set[str]:
    """Return a known value, and other forms that it is written in: JSON, hexadecimal, percent
    signs, and base64 at each of the three places that a text inside a longer one can have."""
    data = value.encode("utf-8", "surrogatepass")
    found = {
        value,
        json.dumps(value)[1:-1],
        data.hex(),
        data.hex().upper(),
        quote(value, errors="replace", safe=""),
    }
    for before in range(3):
        # Of the signs at both ends some bits are the neighbours'.
        first, last = (0, 2, 3)[before], 8 * (before + len(data)) // 6
        coded = b64encode(bytes(before) + data).decode("ascii")[first:last]
        found |= {coded, coded.replace("+", "-").replace("/", "_")}
    return {form for form in found if len(form) >= len(value)}


class Redactor:
    """Hides known values and everything that looks like a secret."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= _MIN_VALUE_CHARS}
        sure = {form for v in known if len(v) >= _MIN_SURE_CHARS for form in forms_of(v)}
        self._known, self._sure = _any_of(known | sure), _any_of(sure)

    def text(self, text: str) -> str:
        """Return `text` without secrets. Redact first, clip afterwards."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = _without_shapes(text)
        for pattern in (_AUTH_HEADER, _BESIDE, _ASSIGNED, _FLAG, _SAID):
            text = pattern.sub(_hidden_value, text)
        return text

    def sure(self, text: str) -> str:
        """Return `text` without known values and without what has a key's own shape.

        What merely stands beside a word such as `password` stays: for texts that are data.
        """
        if self._sure is not None:
            text = self._sure.sub(HIDDEN, text)
        return _without_shapes(text)

    def sure_value(self, value: Any) -> Any:
        """Return a JSON value with `sure` applied to every text in it."""
        if isinstance(value, Mapping):
            return {self.sure(str(k)): self.sure_value(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.sure_value(item) for item in value)
        return self.sure(value) if isinstance(value, str) else value

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value without secrets; `name` is the field it stands in."""
        if isinstance(value, Mapping):
            inside = name if holds_secret(name) else ""
            return {
                self.text(str(k)): self.value(v, inside or str(k)) for k, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.value(item, name) for item in value]
        if isinstance(value, (str, bytes)):
            hide = holds_secret(name) and len(value) > 0
            return (
                HIDDEN if hide else self.text(value if isinstance(value, str) else repr(value))
            )
        return value


def _without_shapes(text: str) -> str:
    if any(mark in text for mark in _SHAPE_MARKS):
        text = _QUERY.sub(_hidden_value, _SHAPES.sub(HIDDEN, text))
    if any(mark in text for mark in _COMMAND_MARKS):
        text = _COMMAND.sub(_hidden_value, text)
    return text


def _hidden_value(found: re.Match[str]) -> str:
    return f"{found[next(name for name in found.groupdict() if found[name])]}{HIDDEN}"


def _any_of(texts: set[str]) -> re.Pattern[str] | None:
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def redact(value: Any, values: Iterable[str] = ()) -> Any:
    """Return `value` (text or JSON) without secrets and without any of `values`."""
    redactor = Redactor(values)
    return redactor.text(value) if isinstance(value, str) else redactor.value(value)
