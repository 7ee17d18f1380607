"""Questions with a right answer."""

from __future__ import annotations

from dataclasses import dataclass

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Question:
    """A question with its right answer: the letter of a choice, or a text or number if there are
    no choices."""

    id: str
    question: str
    answer: str  # the letter of the right choice; without choices the answer itself
    choices: tuple[str, ...] = ()
    subject: str = ""
    language: str = "en"
    explanation: str = ""  # how the answer is found

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError("the question is empty")
        if not self.answer.strip():
            raise ValueError("the answer is empty")
        if len(self.choices) == 1 or len(self.choices) > len(LETTERS):
            raise ValueError(
                f"a question must have either no choices or 2 to {len(LETTERS)} choices, not "
                f"{len(self.choices)}"
            )
        if empty := [
            letter for letter, text in zip(LETTERS, self.choices, strict=False) if not text.strip()
        ]:
            raise ValueError(f"choice {empty[0]} is empty")
        if self.choices and self.answer not in self.letters:
            raise ValueError(
                f"the answer must be a letter from {self.letters[0]} to {self.letters[-1]}, "
                f"not {self.answer[:40]!r}"
            )

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(LETTERS[: len(self.choices)])

    @property
    def right(self) -> str:
        """The right answer in words."""
        return self.choices[self.letters.index(self.answer)] if self.choices else self.answer

    @property
    def lettered(self) -> str:
        """The choices as they are shown, one per line."""
        return "\n".join(
            f"{letter}. {text}" for letter, text in zip(self.letters, self.choices, strict=True)
        )
