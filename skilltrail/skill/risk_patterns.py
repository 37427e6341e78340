"""Addresses, commands and paths that matter, as they stand in a text.

The screen refuses an edit with one that no task has (`optimizers.injection`); a line of a skill
with one is shown (`skill.risks`). The time they take grows with the length of a text.
"""

from __future__ import annotations

import re

_TLDS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|dev|app|co|me|tv|cc|xyz|site|online|shop|top|club"
    "|cloud|link|page|sh|to|ly|gg|zip|mov|invalid|test|example|local"
    "|localhost|internal|onion|de|uk|fr|nl|eu|ru|cn|jp|kr|in|br|us|ca|ch|it|es|pl|se"
)
_PATH = r"""[^\s<>"'`)\]]*"""
LINK = re.compile(
    rf"""
      \b[a-z][a-z0-9+-]{{0,40}}://{_PATH}                     # any scheme
    | \b(?:mailto|javascript|vbscript):[^\s]{_PATH}
    | \bdata:\w+/{_PATH}
    | \bwww\.{_PATH}
    | (?<![\w:/])//(?:[\w-]+\.)+[a-z]\w*{_PATH}
    | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+       # mail
    | (?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+   # a bare host
        (?-i:{_TLDS})(?::\d+)?(?:/{_PATH})?(?![\w-]|\.\w)
    | (?-i:(?<![\w.@/-])(?:[A-Z0-9-]+\.)+(?:COM|ORG|INFO|INVALID|EXAMPLE)\b)
    | (?<![\w.@/-])(?:[a-z0-9-]+\.)+[a-z]{{2,}}/[^\s?`]{{0,200}}\?{_PATH}
    | (?<![\w.])(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?::\d+)?(?:/{_PATH})?(?!\w|\.\w)
    | \[[0-9a-f:]{{2,39}}\]:\d{{2,5}}
    | \blocalhost[:/]{_PATH}
    | \bxn--\w{_PATH}
    """,
    re.IGNORECASE | re.VERBOSE,
)
COMMAND = re.compile(
    r"""
      \b(?i:curl|wget)\s+(?:-|["']?\$|\S*[./:]\S)[^\n`]*
    | \b(?:sudo|doas)\s+[a-z./][^\n`]*
    | \brm\s+-[a-z]+[^\n`]*
    | \b(?:chmod|chown)\s+(?:[+0-7]|-R|\w+:)[^\n`]*
    | \b(?:pip3?|pipx|npm|npx|yarn|pnpm|apt|apt-get|brew|yum|dnf|conda|cargo|gem)\s+
        (?:-\S+\s+)*(?:install|uninstall|add|remove|update|upgrade|exec)\s+[^\n`]*
    | \bgit\s+(?:clone|push|pull|fetch|remote|config|reset|checkout|rm)\b[^\n`]*
    | \b(?:ssh|scp|rsync|sftp|telnet)\s+\S*[@:]\S*[^\n`]*
    | \b(?:nc|ncat|netcat)\s+(?:-|\S+\s+\d+)[^\n`]*
    | \b(?:ba|z|da|k|fi)?sh\s+-c\b[^\n`]*
    | \|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\s*(?:-|`|(?m:$))
    | \b(?:python3?|perl|ruby|node|php)\s+-(?:c|e|m)\b[^\n`]*
    | \b(?:python3?|perl|ruby|node|php|(?:ba|z|da|k)?sh|source)\s+
        [\w./~-]+\.(?:py|pl|rb|js|php|sh)\b[^\n`]*
    | \b(?:powershell|pwsh)(?:\.exe)?\s+-[^\n`]*
    | \b(?:Invoke-(?:WebRequest|Expression|RestMethod)|Start-Process|iwr|iex)\s[^\n`]*
    | \b(?:os\.system|os\.popen|subprocess\.\w+|shell_exec|child_process\.\w+)\s*\([^\n`]*
    | \b(?:docker|podman|kubectl)\s+(?:run|exec|pull|push|apply|delete)\b[^\n`]*
    | \b(?:crontab|mkfs[\w.]{0,20}|launchctl|systemctl|schtasks|reg)\s+
        (?:-|add|delete|enable|start)[^\n`]*
    | \bbase64\s+(?:-d|-D|--decode)[^\n`]*
    | \bdd\s+if=[^\n`]*
    | (?<![\w-])
        (?:cat|ls|cp|mv|ln|tee|sed|awk|tar|find|grep|touch|mkdir|head|tail|xargs|openssl)
        \s+(?:-[a-zA-Z-]|~/|/\w|\.\.?/)[^\n`]*
    | \becho\s[^\n`>]{0,200}>\s*\S[^\n`]*
    | `[^`\n|]*\|\s*(?:grep|base64|xargs|tee|curl|nc|awk|sed|sort|head|tail|sh)\b[^`\n]*
    | \b(?:eval|bash|sh|source)\s+["']?(?:\$[({]|<\()[^\n`]*
    | \b(?:eval|exec|__import__)\s*\([^\n`]*
    | (?m:^[ \t>*-]*`?\$\s[a-z./]{2,}(?:[ \t][^\n$`]*)?`?$)   # a line with a shell prompt
    | (?m:^[ \t]*(?:```|~~~)[ \t]*(?:ba|z|c|k|fi|power)?sh(?:ell(?:-session|script)?)?\b[^\n]*)
    | (?m:^[ \t]*(?:```|~~~)[ \t]*(?:console|ps1|bat|cmd|batch)\b[^\n]*)
    """,
    re.VERBOSE,
)
PATH = re.compile(
    r"""
      (?<![\w~])~[\w-]{0,32}/[\w.~-]+[^\s`"']*              # a home folder
    | (?<![\w/.<)])@?/(?:etc|root|home|usr|var|proc|sys|dev|opt|boot|srv|Users|Library
        |private|Windows)(?:/[^\s`"'<>)]*)?(?![\w>-])
    | (?<![\w/])(?:\.\./){2,}[^\s`"']*
    | (?<!\w)[A-Za-z]:\\{1,2}[\w%$.-][^\s`"']*
    | (?<![\w\\])\\\\[\w.-]+\\[^\s`"']+
    | %(?:APPDATA|LOCALAPPDATA|USERPROFILE|HOMEPATH|TEMP|WINDIR|PROGRAMDATA)%[^\s`"']*
    | \$\{?(?:HOME|XDG_\w{1,40}|USERPROFILE)\b[^\s`"']*
    | (?<![\w.])\.(?:ssh|aws|gnupg|kube|docker|azure|netrc|npmrc|pypirc|pgpass|env
        |git-credentials|bashrc|zshrc|profile|bash_history|config/gcloud)(?![\w-])(?:/[^\s`"']*)?
    | \b(?:id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|known_hosts|shadow\s+file)\b
    """,
    re.VERBOSE,
)
COMMENT = re.compile(
    r"<!--(?:(?!-->)[^\n]){0,200}|(?m:^[ \t]{0,3}\[[^\]\n]{0,40}\]:[ \t]*(?:#|<>)[^\n]*)"
)
