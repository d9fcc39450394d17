"""Sample answers of a checkpoint, generated with Transformers.

Run: `python -m backends.engine.training.sample DIRECTORY [question ...]`
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

QUESTIONS = (
    "Hello", "Are you there?", "What does shutil.copy do?", "What is the module json for?",
    "Explain the for statement in Python.", "How do I open a file?",
    "Which part of Python is this: Return the length of an object.",
)  # fmt: skip


def answer(model: Any, tokenizer: Any, question: str, tokens: int = 96) -> str:
    """Return the greedy answer to a question, at most `tokens` long."""
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt",
        return_dict=True,
    )  # fmt: skip
    with torch.no_grad():
        whole = model.generate(**asked, max_new_tokens=tokens, do_sample=False)
    text: str = tokenizer.decode(whole[0][asked["input_ids"].shape[1] :], skip_special_tokens=True)
    return text


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for question in arguments[1:] or QUESTIONS:
        said = json.dumps(answer(model, tokenizer, question))
        sys.stdout.write(f"{question}\n    {said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
