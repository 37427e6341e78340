"""Secrets: from the environment or .env, and nowhere to be found afterwards."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.cli.main import run
from skilltrail.core.errors import UsageError
from skilltrail.core.redact import (
    _SHAPE_MARKS,
    _SHAPES,
    HIDDEN,
    Redactor,
    holds_secret,
    redact,
    secret_values,
)
from skilltrail.models.environ import environment, read_env_file
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.probe import probe
from skilltrail.models.protocol import Request
from skilltrail.models.registry import key_env_of, open_model
from tests.fault_server import Fault, FaultServer
from tests.model_world import project
from tests.role_options import KEYS, PLAIN, options_at

PLANTED = [
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "sk-ant-api03-abcdefghijklmnopqrst",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaabcdefghijklmnopqrstuvwxyz0123456",
    "xoxb-1234567890-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "gsk_abcdefghijklmnopqrstuvwxyz0123456789",
    "xai-abcdefghijklmnopqrstuvwxyz0123456789",
    "r8_abcdefghijklmnopqrstuvwxyz0123456789",
    "nvapi-abcdefghijklmnopqrstuvwxyz_0123456789",
    "pplx-abcdefghijklmnopqrstuvwxyz0123456789",
    "dapi0123456789abcdef0123456789abcdef",
    "ya29.a0AfH6SMBabcdefghijklmnop",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-AgEIcHlwaS5vcmcabcdefghijklmnopqrstuvwxyz",
    "sk_live_abcdefghijklmnop0123",
]


def test_fields_that_hold_keys_are_hidden_whole_and_numbers_stay() -> None:
    """Public case security-02."""
    found = redact(
        {
            "azure_openai_api_key": "AAAABBBBCCCC",
            "target_x_api_key": "DDDD",
            "api_key": "EEEEFFFFGGGG",
            "token_budget": 5,
            "auth_token": {"of": ["FFFF"]},
        }
    )
    assert found.pop("auth_token") == {"of": [HIDDEN]}
    assert found["token_budget"] == 5
    assert [v for k, v in found.items() if k != "token_budget"] == [HIDDEN] * 3


@pytest.mark.parametrize("secret", PLANTED)
@pytest.mark.parametrize(
    "around", ["{}", "HTTP 401: bad key '{}'", "x={}&y=1", '{{"note": "{}"}}', "…{}…"]
)
def test_nothing_with_a_keys_shape_stays(secret: str, around: str) -> None:
    found = redact(around.format(secret))
    assert HIDDEN in found
    assert not any(secret[i : i + 8] in found for i in range(4, len(secret) - 8))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
        ("https://user:hunter22@host/x", "hunter22"),
        ("redis://:hunter22@host:6379", "hunter22"),
        ("Authorization: Token abcdef0123456789", "abcdef0123456789"),
        ("Set-Cookie: session=abcdef0123456789; Path=/", "abcdef0123456789"),
        ("run --token=abcdef0123456789 now", "abcdef0123456789"),
        ("AccountName=n;AccountKey=Zm9vYmFy==;X=1", "Zm9vYmFy"),
        ("Server=s;Password=p4ssw0rd;", "p4ssw0rd"),
        ("api_key=0123456789", "0123456789"),
        ('"client_secret": "quite a secret"', "quite"),
        ("x-api-key: plainvalue", "plainvalue"),
        (r"{\"api_key\": \"plainvalue\", \"n\": 1}", "plainvalue"),
        (r"{\\\"api_key\\\": \\\"plainvalue\\\"}", "plainvalue"),
        ('api_key = """plainvalue"""', "plainvalue"),
        ("run --api-key plainvalue --n 1", "plainvalue"),
        ("run --openai-token plainvalue", "plainvalue"),
        ("GET https://host/v1?alt=json&key=plainvalue&n=1", "plainvalue"),
        ("https://host/blob?sig=a%2Fb%3Dlong&se=1", "long"),
        ("GET https://host/v1?n=1&api_key=plainvalue", "plainvalue"),
        ("https://host/v1?access_token=plainvalue#top", "plainvalue"),
        ("https://host/v1?x&amp;subscription-key=plainvalue", "plainvalue"),
        ("https://host/b?X-Amz-Signature=plainvalue&n=1", "plainvalue"),
        (r'api_key="plain\"value"', "plain"),
        (r'api_key="plain\"value"', "value"),
        (r"password='plain\\' + 1", "plain"),
        ('api_key="plainvalue and no end', "plainvalue"),
        ("password: 'plainvalue and no end", "and no end"),
        (r"{\"api_key\": \"plainvalue and no end", "and no end"),
        ('Authorization: Bearer "plainvalue-1"', "plainvalue"),
        (r"{\"Authorization\": \"Bearer plainvalue-1\"}", "plainvalue"),
        (r"Bearer \"plainvalue-1\"", "plainvalue"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut here", "MIIE"),
        ("The password is hunter2.", "hunter2"),
        ("the db password is swordfish", "swordfish"),
        ("Password for admin is: S3cret!", "S3cret"),
        ("the password of the shop's server is now x9!kk", "x9!kk"),
        ("its password was 'open sesame'", "sesame"),
        ("The password was changed to hunter", "hunter"),
        ("The password is “swordfish”", "swordfish"),
        ("user admin and password hunter22", "hunter22"),
        ('the passphrase is "correct horse battery"', "horse"),
        ("the API key is abcd1234efgh", "abcd1234"),
        ("my secret token is a1b2c3d4e5", "a1b2"),
        ("its PIN is 4711", "4711"),
        ("DB_PASS=hunter", "hunter"),
        ("password is hunter and stays", "hunter"),
        ("the password is swordfish but not for long", "swordfish"),
        ("password: |\n  hunter2\n  hunter3\nuser: me", "hunter3"),
        ("password: >-\n  swordfish", "swordfish"),
        ("password: $ecret99", "$ecret99"),
        ("password: requiredx7", "requiredx7"),
        ("password = 'required-9'", "required-9"),
        ("mot de passe: azerty", "azerty"),
        ("비밀번호: abc12345", "abc12345"),
        ("Kennwort = geheim", "geheim"),
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX", "XXXX"),
        ("https://discord.com/api/webhooks/123/" + "d" * 40, "dddd"),
        ("SG." + "g" * 22 + "." + "h" * 22, "gggg"),
        ("curl -u user:plainvalue https://x", "plainvalue"),
        ("curl -sSu user:plainvalue x", "plainvalue"),
        ("curl https://x --user 'me:plain value'", "value"),
        ("curl \\\n  -u user:plainvalue x", "plainvalue"),
        ("curl --proxy-user=a:plainvalue x", "plainvalue"),
        ("sshpass -p plainvalue ssh x", "plainvalue"),
        ("mysql -u root -pplainvalue", "plainvalue"),
        ("docker login -u me -p plainvalue", "plainvalue"),
        ("https://abcdefghij0123456789xyz@host/x", "abcdefghij"),
        ("pass: secret9x", "secret9x"),
        ("pass = 'sword fish'", "sword"),
        ("PASS=hunter", "hunter"),
        ("user: admin\npass: letmein\nhost: db", "letmein"),
        ("login: bob / pass: letmein", "letmein"),
        ("user=bob pass=letmein", "letmein"),
        ("pwd: letmein", "letmein"),
        ("my pass is letmein", "letmein"),
        ("the passwd for root is letmein", "letmein"),
        ("The passphrase: correct horse battery staple", "battery"),
        ('passphrase "correct horse battery staple" unlocks it', "battery"),
        ("pass phrase: correct horse battery", "horse"),
        ("use the password 'blue monday' to log in", "monday"),
        ("The password “let me in” worked", "let me"),
        ("password «синий понедельник»", "понедельник"),
        ("seed phrase: " + "legal winner thank year " * 3, "thank"),
        ("recovery code: 9F2K-77QP", "9F2K"),
        ("credentials: admin:letmein9", "letmein9"),
        ("wachtwoord: geheim", "geheim"),
        ("密码是 abc12345", "abc12345"),
        ("비밀번호는 abc12345 입니다", "abc12345"),
        ("machine api.example.com login bob password letmein", "letmein"),
        ("<password>letmein</password>", "letmein"),
        ('<add key="ApiKey" value="letmein99"/>', "letmein99"),
        ("| password | letmein9 |", "letmein9"),
    ],
)
def test_secrets_in_plain_text_are_hidden(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)


@given(st.from_regex(_SHAPES))
def test_no_shape_is_without_the_mark_that_is_looked_for_first(text: str) -> None:
    assert any(mark in text for mark in _SHAPE_MARKS)


@pytest.mark.parametrize(
    "text",
    [
        "total tokens: 512",
        "the key insight of the skill",
        "max_tokens: 64, fact key " + "a" * 64,
        "tasks sk-1 and ask-me",
        "run --max-tokens 100 --token-budget 5 --secret --n 1",
        "https://example.org/path?x=1",
        "The password is required. A password is never shown; passwords are case-sensitive.",
        "If the password is wrong, stop. The next token is 123; the pin is red.",
        "curl -s https://x | grep -u y; curl -u $USER:$PASS x; curl -u <user>:<password> x",
        "docker run -p 80:80 x; mysql -p db",
        "api_key: required",
        "The api_key: is read from the environment.",
        "api_key: missing, set it; secret: optional; password: must not be empty",
        '{"api_key": null, "password": "", "secret": "required", "x_api_key": "string"}',
        "def ask(api_key: str, password: Optional[str], secret=None): ...",
        "api_key=os.environ['OPENAI_API_KEY']",
        "api_key=$KEY; api_key: ${KEY}; password={{ vault.pw }}; secret: <your secret>",
        "The password is optional and short; the password is case-sensitive and old.",
        "pass: true; pass: 97%; pass: 12/20; pass: no; status: pass; compass: north",
        "3 pass, 1 fail; pass: answer equals gold; PASS: test_login2; pass@1: 0.5",
        "The first pass is slow, the second pass is better; a boarding pass is needed",
        "pwd: /home/me; PWD=/home/me; pwd=$(pwd); pwd is a command",
        'The password "field" is red; a passphrase of several words; mnemonic: every good boy',
        "The seed skill gives every item one line and then tells what the model said",
        "seed phrase is never asked for; the verification code is required",
        "| password | what you log in with |",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=4))
def test_a_known_value_is_hidden_wherever_it_stands(secret: str) -> None:
    redactor = Redactor([secret])
    shown = json.dumps(redactor.value({"a": [f"x {secret} y"], "b": secret}))
    assert secret not in shown.replace("hidden", "")


KEY = "plain-looking/9f21c0+é"


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_a_known_value_is_hidden_in_base64_wherever_it_stands_in_the_text(
    before: bytes, after: bytes
) -> None:
    redactor = Redactor([KEY])
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode(before + KEY.encode() + after).decode()
        for found in (redactor.sure(coded), redactor.text(coded)):
            assert HIDDEN in found
            # What is left holds too few bits of the key to tell it.
            assert len(found.replace(HIDDEN, "")) <= len(coded) - 8 * len(KEY.encode()) // 6 + 3


@pytest.mark.parametrize(
    "form",
    [
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        quote(KEY, safe=""),
        json.dumps(KEY)[1:-1],
    ],
)
def test_a_known_value_is_hidden_in_the_other_forms_that_texts_write_it_in(form: str) -> None:
    redactor = Redactor([KEY])
    assert redactor.sure(f"x{form}y") == redactor.text(f"x{form}y") == f"x{HIDDEN}y"


def test_a_value_below_eight_characters_is_hidden_in_messages_and_not_in_data() -> None:
    redactor = Redactor(["none1"])
    assert redactor.text("is none1") == f"is {HIDDEN}"
    assert redactor.sure("is none1") == "is none1"


def test_a_key_with_a_line_end_is_hidden_without_it_too() -> None:
    (value,) = secret_values({"LAB_KEY": "plain-looking\n"})
    assert Redactor([value]).sure("plain-looking") == HIDDEN


def test_a_probe_tells_no_key_that_stands_in_a_model_s_name() -> None:
    key = "lab-key-that-has-no-known-shape"
    with FaultServer() as server:
        options = replace(options_at("chat", server.url), model=f"m-{key}")
        found = asyncio.run(probe("target", options, {"LAB_KEY": key}))
    assert found.ok
    assert key not in str(found)
    with FaultServer(lambda _: Fault(status=404, body={"error": key})) as server:
        options = replace(options_at("chat", server.url), model=f"m-{key}")
        found = asyncio.run(probe("target", options, {"LAB_KEY": key}))
    assert not found.ok
    assert key not in str(found)


def test_names_of_secrets_are_known_in_every_spelling() -> None:
    for name in (
        "OPENAI_API_KEY",
        "apiKey",
        "x-auth-token",
        "DB_PASSWORD",
        "clientSecret",
        "db_pwd",
    ):
        assert holds_secret(name)
    for name in ("max_tokens", "tokens", "key", "keywords", "key_env", "PWD", "OLDPWD"):
        assert not holds_secret(name)


def test_values_of_key_variables_are_collected() -> None:
    environ = {"OPENAI_API_KEY": "one-key", "ODD_NAME": "two-key", "HOME": "/root"}
    assert secret_values(environ, ["ODD_NAME"]) == {"one-key", "two-key"}


def test_a_provider_that_echoes_the_key_does_not_leak_it() -> None:
    key = "lab-key-that-has-no-known-shape"
    body = {"error": {"message": f"Incorrect API key provided: {key}"}}
    with FaultServer(lambda _: Fault(status=401, body=body)) as server:
        model = open_model("target", options_at("chat", server.url), environ={"LAB_KEY": key})
        with pytest.raises(ModelConfigError) as caught:
            asyncio.run(model.complete(Request(prompt="hi")))
    assert "LAB_KEY" in str(caught.value)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert key not in str(chain)
        chain = chain.__cause__


def test_a_providers_usual_key_never_goes_to_another_url() -> None:
    elsewhere = replace(PLAIN, backend="openai", key_env=None, base_url="http://127.0.0.1:1")
    assert key_env_of(elsewhere) is None
    assert key_env_of(replace(elsewhere, base_url=None)) == "OPENAI_API_KEY"

    with FaultServer() as server:
        options = replace(options_at("chat", server.url), key_env=None)
        model = open_model("target", options, environ={**KEYS, "OPENAI_API_KEY": "sk-mine"})
        asyncio.run(model.complete(Request(prompt="hi")))
        assert "sk-mine" not in json.dumps(dict(server.calls[0].headers))


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "azure"])
def test_a_key_does_not_follow_a_redirect(name: str) -> None:
    with FaultServer() as elsewhere:
        away = Fault(status=307, headers={"location": f"{elsewhere.url}/v1/x"})
        with FaultServer(lambda _: away) as server:
            model = open_model("target", options_at(name, server.url), environ=KEYS)
            with pytest.raises(ModelConfigError, match="target.base_url"):
                asyncio.run(model.complete(Request(prompt="hi")))
        assert elsewhere.calls == []


def test_an_env_file_is_read_as_it_stands() -> None:
    text = (
        "\ufeff# keys\n\nexport A_KEY=abc=def\nB='single # quoted'\n"
        'C="double"\nD=plain # note\nE=$A\n'
    )
    assert read_env_file(text) == {
        "A_KEY": "abc=def",
        "B": "single # quoted",
        "C": "double",
        "D": "plain",
        "E": "$A",
    }


def test_a_broken_env_file_is_named_without_its_content() -> None:
    with pytest.raises(UsageError, match=r"\.env, line 2") as caught:
        read_env_file("A=1\nmy secret line\n")
    assert "secret" not in str(caught.value)


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath(".env").write_text("TRY_A=file\nTRY_B=file\nTRY_C=file\n", "utf-8")
    monkeypatch.setenv("TRY_A", "process")
    monkeypatch.setenv("TRY_C", "")
    found = environment(tmp_path)
    assert (found["TRY_A"], found["TRY_B"], found["TRY_C"]) == ("process", "file", "file")


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_doctor_prints_no_key_that_stands_where_a_name_belongs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    flag: list[str],
) -> None:
    """A value that a variable keeps secret, pasted as the model's name."""
    secret = "quiet-little-name-42"
    role = {
        "backend": "openai",
        "model": secret,
        "provider": "lab",
        "base_url": "http://[::1]:9",
    }
    project(tmp_path, role, items=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_API_KEY", secret)
    assert run(["doctor", "--no-probe", *flag]) in (0, 1)
    said = "".join(capfd.readouterr())
    assert HIDDEN in said
    assert secret not in said
