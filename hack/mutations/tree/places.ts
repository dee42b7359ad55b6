import { bare, below, child, children, nameOf, type SyntaxNode } from './syntax.ts';

/** A named piece of a file: a function, a method or a constant, with all that is inside. Mutants are addressed by its name. */
export interface Place {
  /** `launch`, `DriverCall.#show`, `RULES`. */
  readonly name: string;
  /** Offsets into the text. */
  readonly start: number;
  readonly end: number;
  readonly node: SyntaxNode;
}

/** The places of a file, in the order of its text. */
export function placesOf(program: SyntaxNode): readonly Place[] {
  return children(program, 'body').flatMap((statement) => {
    const node = child(statement, 'declaration') ?? statement;
    switch (node.type) {
      case 'FunctionDeclaration':
        return [place(nameOf(child(node, 'id')), statement, node)];
      case 'ClassDeclaration':
        return membersOf(nameOf(child(node, 'id')), node);
      case 'VariableDeclaration':
        return children(node, 'declarations').map((one) => place(nameOf(child(one, 'id')), statement, one));
      case 'ExpressionStatement':
      case 'IfStatement':
        return [place('', statement, node)];
      default:
        return [];
    }
  });
}

function membersOf(name: string, node: SyntaxNode): readonly Place[] {
  const body = child(node, 'body');
  const members = body === undefined ? [] : below(body);
  return members
    .filter((member) => child(member, 'value') !== undefined)
    .map((member) => place(`${name}.${keyOf(member)}`, member, member));
}

function keyOf(member: SyntaxNode): string {
  const key = child(member, 'key');
  if (key === undefined) return '';
  return member['computed'] === true ? `[${nameOf(child(bare(key), 'property'))}]` : nameOf(key);
}

function place(name: string, { start, end }: SyntaxNode, node: SyntaxNode): Place {
  return { name, start, end, node };
}
