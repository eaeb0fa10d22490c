"""Files as arguments; for each that the grammar of Bicep refuses a line with its place. The grammar knows words, not types."""

import sys

import tree_sitter
import tree_sitter_bicep

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))


def refused(node):
    if node.type == "ERROR" or node.is_missing:
        return node.start_point
    return next((refused(child) for child in node.children if child.has_error), node.start_point)


for name in sys.argv[1:]:
    with open(name, "rb") as file:
        root = parser.parse(file.read()).root_node
    if root.has_error:
        print(f"{name}:{refused(root)[0] + 1}: not understood")
