"""Files of Bicep as arguments; for each a line of JSON: its resources as an ARM template has them, expressions as "[text]", and the names
that are used and declared nowhere, which is what its compiler would refuse. Only what is rendered is understood: literals, names of
other resources and of parameters."""

import json
import sys

import tree_sitter
import tree_sitter_bicep

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))
ESCAPES = {"\\'": "'", "\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\$": "$"}


def inner(node):
    return [each for each in node.children if each.is_named and each.type != "comment"]


def literal(node):
    """None: something is put in, so that it is an expression."""
    if any(each.type == "interpolation" for each in node.children):
        return None
    return "".join(ESCAPES[each.text.decode()] if each.type == "escape_sequence" else each.text.decode() for each in inner(node))


def names(node):
    """Identifiers that stand for something."""
    if node.type == "identifier":
        return {node.text.decode()}
    parts = inner(node)
    return set().union(*[names(each) for each in (parts[1:] if node.type == "call_expression" else parts)]) if parts else set()


def value(node, used):
    if node.type == "object":
        out = {}
        for each in inner(node):
            key, what = inner(each)
            said = literal(key) if key.type == "string" else key.text.decode()
            if said is None:  # an id that another resource has
                used |= names(key)
            out["[key]" if said is None else said] = value(what, used)
        return out
    if node.type == "array":
        return [value(each, used) for each in inner(node)]
    if node.type == "string" and literal(node) is not None:
        return literal(node)
    if node.type in ("number", "boolean", "null"):
        return json.loads(node.text)
    used |= names(node)
    return f"[{node.text.decode()}]"


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        root = parser.parse(file.read()).root_node
    declared, used, resources, made = {}, set(), [], set()
    for each in inner(root):
        if each.type not in ("resource_declaration", "parameter_declaration", "variable_declaration"):
            continue
        parts = inner(each)
        declared[parts[0].text.decode()] = parts
        if each.type == "resource_declaration":  # a parameter may be an object as well
            made.add(parts[0].text.decode())
    for name, parts in declared.items():
        if name in made:
            kind, version = literal(parts[1]).split("@")
            resources.append({"type": kind, "apiVersion": version, **value(parts[-1], used)})
    print(json.dumps({"resources": resources, "unknown": sorted(used - set(declared))}))
