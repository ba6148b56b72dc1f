"""Reads one call as JSON from standard input, writes one JSON text.

The call is {"action": "describe", "arguments": {...}}. The arguments were checked
against the schema in commands.yaml. An exit status other than 0 makes the call
fail; what was written to standard error explains it.
"""

import json
import sys


def describe(values, digits):
    numbers = [float(v) for v in values]
    return {
        "count": len(numbers),
        "sum": sum(numbers),
        "mean": round(sum(numbers) / len(numbers), digits),
        "least": min(numbers),
        "greatest": max(numbers),
    }


ACTIONS = {"describe": describe}


def main():
    call = json.load(sys.stdin)
    try:
        answer = ACTIONS[call["action"]](**call["arguments"])
    except ValueError as problem:
        sys.exit(f"{call['action']}: {problem}")
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
