"""An agent's story for the tests: a plan, calls, a failure, a rollback, a fork, an offer."""

from pathlib import Path

from holdfast import SyncClient

AGENT, SESSION = "coder", "fix-42"


class Ticket:
    """A class that the command line has never heard of."""

    def __init__(self, number: int) -> None:
        self.number = number


def look(path: str) -> str:
    """A tool that reads."""
    return f"the text of {path}"


def charge(amount: int) -> str:
    """A tool whose effect another one undoes."""
    return f"receipt {amount}"


def refund(output: str, amount: int) -> None:
    """Undoes a charge."""
    with open("refunds.txt", "a") as file:
        file.write(f"{output}\n")


def send(to: str) -> str:
    """A tool that cannot be undone."""
    return f"sent to {to}"


def tell(path: Path) -> None:
    """The whole story, in an SQLite file."""
    with SyncClient.sqlite(path) as client:
        _work(client)
        client.fork(_named(client, "fix: completed"), session_id="bolder")
        client.save(
            AGENT,
            execution_state={"messages": [{"role": "user", "content": "be bold"}]},
            session_id="bolder",
            step_index=9,
            step_name="rewrite",
        )
        client.handoff(client.timeline(AGENT, SESSION)[0].checkpoint_id, "reviewer")


def _work(client: SyncClient) -> None:
    state = {"messages": [{"role": "user", "content": "The tests fail."}], "ticket": Ticket(42)}
    with client.session(AGENT, session_id=SESSION, state=state) as run:
        tasks = {task.name: task for task in run.tasks.plan("read", "fix", "test")}
        with tasks["read"]:
            said = run.call(look, "main.py", effect="read")
            run.state["messages"].append({"role": "assistant", "content": said})
        with tasks["fix"]:
            run.state["messages"].append({"role": "assistant", "content": "Fixed it."})
        run.rollback("read: completed")
        run.state["messages"].append({"role": "assistant", "content": "Fixed it better."})
        with tasks["fix"]:
            run.state["fixed"] = True
        try:
            with tasks["test"]:
                raise ValueError("2 tests fail")
        except ValueError:
            pass


def _named(client: SyncClient, name: str) -> str:
    found = [i for i in client.timeline(AGENT, SESSION) if i.step_name == name]
    return found[0].checkpoint_id
