"""Write the `korqa` data set: short invented Korean texts with three questions each.

The files have KorQuAD 1.0's layout. All names are invented, so that no model knows an answer;
particles follow the sound before them. The same seed gives the same bytes anywhere.

    python data/korqa/generate.py            rewrites train, selection and test beside it
    python data/korqa/generate.py --easy     those in `easy/`: one sentence with one question
"""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 10, "selection": 8, "test": 12}  # texts; three questions each

SURNAMES = tuple("강고권남노류문배백서손송신안양오유윤임장전정조차최한허홍")
# fmt: off
GIVEN = (
    "가람", "나래", "다온", "도윤", "라온", "미르", "보람", "새별", "서진", "소담", "아람",
    "여울", "예담", "은결", "이든", "지안", "하람", "한결",
)
PLACES = (
    "가온", "누리", "달빛", "둔치", "마루", "모래내", "바람골", "벼랑", "버들", "별내", "솔밭",
    "안개", "여우골", "은물", "잔별", "푸른", "한들", "해오름",
)
# fmt: on
# after a final consonant / after a vowel
PARTICLES = {"은": ("은", "는"), "이": ("이", "가"), "을": ("을", "를"), "과": ("과", "와")}

KINDS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "책방": (
        (
            "{person}{은} {date} {place}읍에 {place}책방을 열었다.",
            "처음 서가에는 책 {count}권이 꽂혀 있었다.",
            "지금은 {other}{이} 책방을 맡아 {amount}원짜리 회원권을 판다.",
        ),
        (
            ("{place}책방이 문을 연 날은?", "{date}"),
            ("처음 서가에 꽂혀 있던 책은 몇 권인가?", "{count}권"),
            ("지금 {place}책방을 맡고 있는 사람은?", "{other}"),
        ),
    ),
    "다리": (
        (
            "{place}교는 {date} {place}강 위에 놓였다.",
            "설계는 {person}{이} 맡았고 길이는 {count}미터이다.",
            "공사에는 모두 {amount}만 원이 들었으며 {other}{이} 첫 번째로 다리를 건넜다.",
        ),
        (
            ("{place}교를 설계한 사람은?", "{person}"),
            ("{place}교의 길이는?", "{count}미터"),
            ("{place}교를 첫 번째로 건넌 사람은?", "{other}"),
        ),
    ),
    "등대": (
        (
            "{place}섬의 등대는 {date}에 처음 불을 밝혔다.",
            "등대지기 {person}{은} 계단 {count}개를 날마다 오르내렸다.",
            "불빛은 {amount}미터 밖에서도 보이며, 뒤를 이은 등대지기는 {other}이다.",
        ),
        (
            ("{place}섬의 등대가 처음 불을 밝힌 날은?", "{date}"),
            ("{person}{이} 날마다 오르내린 계단은 몇 개인가?", "{count}개"),
            ("{person}의 뒤를 이은 등대지기는?", "{other}"),
        ),
    ),
    "축제": (
        (
            "제{small}회 {place} 축제는 {date} {place}마을에서 열렸다.",
            "{person}{이} 연 국수 가게에는 손님 {count}명이 다녀갔다.",
            "노래 대회에서는 {other}{이} 우승하여 상금 {amount}원을 받았다.",
        ),
        (
            ("노래 대회에서 우승한 사람은?", "{other}"),
            ("국수 가게에 다녀간 손님은 몇 명인가?", "{count}명"),
            ("노래 대회의 상금은 얼마인가?", "{amount}원"),
        ),
    ),
    "열차": (
        (
            "{place}선의 첫 열차는 {date} {hour}시에 {place}역을 떠났다.",
            "기관사는 {person}, 승객은 {count}명이었다.",
            "가장 비싼 표는 {amount}원이었으며 {other}{이} 그 표를 샀다.",
        ),
        (
            ("{place}선 첫 열차의 기관사는?", "{person}"),
            ("첫 열차가 {place}역을 떠난 시각은?", "{hour}시"),
            ("가장 비싼 표를 산 사람은?", "{other}"),
        ),
    ),
}


def with_particle(text: str) -> str:
    """Return `text` with each `{은}`-like mark as its sound requires."""

    def chosen(mark: re.Match[str]) -> str:
        last = mark[1]
        closed = "가" <= last <= "힣" and (ord(last) - ord("가")) % 28 > 0
        return last + PARTICLES[mark[2]][0 if closed else 1]

    return re.sub(r"(.)\{([은이을과])\}", chosen, text)


class Writer:
    """Draws values; every name of a person and a place is used once in the whole set."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.people = [surname + given for surname in SURNAMES for given in GIVEN]
        self.places = [other + one for one in PLACES for other in ("", "윗", "새", "큰")]
        rng.shuffle(self.people)
        rng.shuffle(self.places)

    def values(self) -> dict[str, str]:
        rng = self.rng
        date = f"{rng.randint(1890, 1999)}년 {rng.randint(1, 12)}월 {rng.randint(1, 28)}일"
        return {
            "person": self.people.pop(),
            "other": self.people.pop(),
            "place": self.places.pop(),
            "date": date,
            "count": str(rng.randint(112, 987)),
            "amount": f"{rng.randint(12, 98)},{rng.randint(1, 9)}00",
            "small": str(rng.randint(3, 29)),
            "hour": f"오전 {rng.randint(5, 11)}",
        }

    def article(self, kind: str, number: int, easy: bool) -> dict[str, Any]:
        """Return one article of KorQuAD's layout with one text and its questions."""
        sentences, asks = KINDS[kind]
        values = self.values()
        marks = {particle: f"{{{particle}}}" for particle in PARTICLES}

        def filled(text: str) -> str:
            return with_particle(text.format(**values, **marks))

        context = " ".join(filled(sentence) for sentence in sentences)
        questions = []
        for index, (question, answer) in enumerate(asks):
            text = filled(answer)
            gold = {"text": text, "answer_start": context.index(text)}
            id = f"own-{number:03}-0-{index}"
            questions.append({"id": id, "question": filled(question), "answers": [gold]})
        if easy:
            questions = [questions[number // len(KINDS) % len(questions)]]
            context, questions = easier(context, questions[0])
        return {
            "title": f"{values['place']} {kind}",
            "paragraphs": [{"context": context, "qas": questions}],
        }


def easier(context: str, question: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the one sentence of a text that answers a question, and that question."""
    (gold,) = question["answers"]
    sentence = next(one for one in context.split(". ") if gold["text"] in one)
    sentence = sentence if sentence.endswith(".") else f"{sentence}."
    found = {**gold, "answer_start": sentence.index(gold["text"])}
    return sentence, [{**question, "answers": [found]}]


def splits(seed: int, easy: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the articles of each split."""
    sizes = {split: size * 2 if easy else size for split, size in SIZES.items()}
    writer, kinds = Writer(random.Random(seed)), list(KINDS)
    numbers = iter(range(sum(sizes.values())))
    return {
        split: [writer.article(kinds[k % len(kinds)], next(numbers), easy) for k in range(size)]
        for split, size in sizes.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20260)
    parser.add_argument("--easy", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or (HERE / "easy" if options.easy else HERE)
    out.mkdir(parents=True, exist_ok=True)
    for split, articles in splits(options.seed, options.easy).items():
        whole = {"version": "own_korqa_1", "data": articles}
        text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
        path = out / f"{split}.json"
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
