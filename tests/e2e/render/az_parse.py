"""Lists of words on standard input, as JSON; for each what az's own parser says of it: null where it takes it. Nothing is run, nobody
is asked: an extension that is not installed has no commands here, and its first words are the answer."""

import contextlib
import io
import json
import logging
import sys

from azure.cli.core import get_default_cli
from azure.cli.core.commands import AzCliCommandInvoker

cli = get_default_cli()
EXTENSIONS = ("ml ", "network firewall ")


class Parsed(BaseException):
    pass


def judged(words):
    if any(" ".join(words).startswith(each) for each in EXTENSIONS):
        return "of an extension"
    said = io.StringIO()
    heard = logging.StreamHandler(said)
    heard.setLevel(logging.WARNING)
    logging.getLogger("cli").addHandler(heard)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            cli.invoke(words, out_file=said)
    except Parsed:
        return None
    except SystemExit as end:
        return f"exit {end.code}: {said.getvalue()[:300]}"
    except Exception as problem:  # what a parser says of a value
        return f"{type(problem).__name__}: {problem}"
    finally:
        logging.getLogger("cli").removeHandler(heard)
    # What stands behind a sign-in has been parsed before.
    return None if "az login" in said.getvalue() else f"nothing was parsed: {said.getvalue()[:900]}"


def stop(*_):
    raise Parsed


AzCliCommandInvoker._run_jobs_serially = stop
AzCliCommandInvoker._run_job = stop
json.dump([judged(words) for words in json.load(sys.stdin)], sys.stdout)
