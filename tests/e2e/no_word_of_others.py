"""A check that schemathesis runs on every answer (api_roles_test.py): nothing of another organisation stands in it."""

import os

import schemathesis

CANARIES = os.environ["STOKER_E2E_CANARIES"].split()


@schemathesis.check
def no_word_of_others(context, response, case):
    asked = f"{case.formatted_path} {case.query} {case.headers} {case.body!r}"
    said = response.content.decode(errors="replace") + str(response.headers)
    for canary in CANARIES:
        assert canary not in said or canary in asked, f"{canary} is of another organisation"
