"""Programs with one small fault: what tests that are worth something must find."""

import ast
import copy
from collections.abc import Iterator

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


def faults(node: ast.AST) -> Iterator[ast.AST]:
    """A node with one fault in it, in every way there is."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARED:
            new.ops[0] = COMPARED[type(op)]()
            yield new
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in COMPUTED:
            new.op = COMPUTED[type(op)]()
            yield new
        case ast.BoolOp():
            new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
            yield new
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield new.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.If() | ast.IfExp():
            new.test = ast.UnaryOp(ast.Not(), new.test)
            yield new


class Put(ast.NodeTransformer):
    """Put a node in the place of another one."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def mutants(code: str) -> Iterator[str]:
    """All programs that differ from this one by one fault, in the order of their places."""
    seen = {ast.unparse(ast.parse(code))}
    for place, node in enumerate(ast.walk(ast.parse(code))):
        for fault in faults(node):
            tree = ast.parse(code)
            old = next(each for number, each in enumerate(ast.walk(tree)) if number == place)
            found = ast.unparse(ast.fix_missing_locations(Put(old, fault).visit(tree)))
            if found not in seen:
                seen.add(found)
                yield found
