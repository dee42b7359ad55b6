import vm from 'node:vm';

import { describe, expect, test } from '@jest/globals';

import { apply } from './edit.ts';
import { withEnds } from './loops.ts';
import { mutantsOf } from './mutants.ts';

const FILE = 'pkg/a.ts';

/** The mutants of the body of a function, each as the whole body, without white space at its ends. */
function mutated(body: string, kind?: string, type = 'void'): string[] {
  const before = `async function f(a: number, b: number): ${type} {`;
  const source = `${before}${body}}`;
  return mutantsOf(FILE, source)
    .filter((mutant) => kind === undefined || mutant.kind === kind)
    .map((mutant) => apply(source, mutant).slice(before.length, -1).replaceAll(/\s+/g, ' ').trim());
}

describe('mutants', () => {
  test.each([
    { kind: 'statement', body: 'g(); h();', want: ['h();', 'g();'] },
    { kind: 'statement', body: 'if (a) return; h();', want: ['h();', 'if (a) return;'] },
    { kind: 'statement', body: 'if (a) { g(); } else { h(); }', want: ['if (a) { g(); }'] },
    { kind: 'statement', body: 'for (const x of a) g(x);', want: ['', 'for (const x of a) {}'] },
    {
      kind: 'statement',
      body: 'if (a) { g(); return; } h();',
      want: ['h();', 'if (a) { return; } h();', 'if (a) { g(); } h();', 'if (a) { g(); return; }'],
    },
    { kind: 'await', body: 'await g();', want: ['void g();'] },
    { kind: 'condition', body: 'if (a) g();', want: ['if (true) g();'] },
    {
      kind: 'condition',
      body: 'if (a) g(); else h();',
      want: ['if (true) g(); else h();', 'if (false) g(); else h();'],
    },
    { kind: 'condition', body: 'g(a ? b : c());', want: ['g(b)', 'g(c())'].map((text) => `${text};`) },
    { kind: 'condition', body: 'const x = a === b;', want: ['const x = true;', 'const x = false;'] },
    { kind: 'operand', body: 'g(a && b && c);', want: ['g(b && c);', 'g(a && c);', 'g(a && b);'] },
    { kind: 'operand', body: 'g(a ?? b);', want: ['g(b);', 'g(a);'] },
    { kind: 'operand', body: 'g((a || b) && c);', want: ['g(c);', 'g((a || b));', 'g((b) && c);', 'g((a) && c);'] },
    { kind: 'operand', body: 'g(a + b);', want: ['g(a);', 'g(b);'] },
    { kind: 'operand', body: "g('a' + b);", want: [] },
    { kind: 'operand', body: 'g(Math.min(a, b));', want: ['g(a);', 'g(b);'] },
    {
      kind: 'operand',
      body: 'g(Math.max(a, b, c));',
      want: ['g(Math.max( b, c));', 'g(Math.max(a, c));', 'g(Math.max(a, b, ));'],
    },
    { kind: 'boundary', body: 'g(a < b);', want: ['g(a <= b);'] },
    { kind: 'boundary', body: 'if (a === b) return; g(a < b);', want: [] },
    { kind: 'call', body: 'g(a.some(h), b.filter(h));', want: ['g(a.every(h), b.filter(h));', 'g(a.some(h), b);'] },
    { kind: 'negation', body: 'g(!a);', want: ['g(a);'] },
    {
      kind: 'element',
      body: 'g({ a, ...b, c: undefined });',
      want: ['g({ ...b, c: undefined });', 'g({ a, c: undefined });'],
    },
    { kind: 'case', body: 'switch (a) { case 1: g(); break; default: h(); }', want: ['switch (a) { default: h(); }'] },
    { kind: 'intent', body: "w.delete('destroy', x);", want: ["w.delete('change', x);"] },
    { kind: 'requeue', body: "g(requeue(5, 'it'));", want: ["g(({ kind: 'stop', waitingFor: 'it' }));"] },
    {
      kind: 'precondition',
      body: 'g(statusPatch(a, b));',
      want: ['g(((patch) => { delete patch.body.metadata.resourceVersion; return patch; })(statusPatch(a, b)));'],
    },
  ])('of kind $kind of "$body"', ({ kind, body, want }) => {
    expect(mutated(body, kind)).toEqual(want);
  });

  test.each([
    { type: 'boolean', body: 'return g(a);', want: ['return true;', 'return false;'] },
    { type: 'string | undefined', body: 'return g(a);', want: ['return undefined;'] },
    { type: 'readonly string[]', body: 'return g(a);', want: ['return [];'] },
    { type: 'string', body: 'return g(a);', want: [] },
    { type: 'void', body: 'g((x) => x > a);', want: ['g((x) => true);', 'g((x) => false);'] },
  ])('of the result of a function of type $type', ({ type, body, want }) => {
    expect(mutated(body, 'result', type)).toEqual(want);
  });

  test.each([
    { what: 'logs', body: 'this.#deps.log.info({ a: b ?? c }, "x");' },
    { what: 'what errors say', body: 'if (a) g(); else throw new Error(b ?? c);' },
    { what: 'types', body: 'const x = a as unknown as { readonly b: 1 };' },
  ])('are not made of $what', ({ body }) => {
    expect(mutated(body, 'operand')).toEqual([]);
    expect(mutated(body, 'element')).toEqual([]);
  });

  test('are not made of what a table at the top of a file holds, but of its functions', () => {
    const source = 'const RULES = { a: 1, b: 2, c: (x: number) => x > 1 };';

    expect(mutantsOf(FILE, source).map(({ kind }) => kind)).toEqual(['result', 'result', 'boundary']);
  });

  test('are named by the function, method or constant that they are in, and say its lines', () => {
    const source =
      'export function f() {\n  g();\n}\nclass A {\n  #x = 1;\n  #m() {\n    h();\n  }\n}\nconst C = () => a > b;\n';

    const places = mutantsOf(FILE, source).map(({ place, lines }) => [place, ...lines]);

    expect(places).toEqual([['f', 1, 3], ['A.#m', 6, 8], ...Array.from({ length: 3 }, () => ['C', 10, 10])]);
  });

  test('make a difference where something has to be run for it', () => {
    const source = 'function f() { if (a) g(); return b ? c : d; }';

    const whatRuns = mutantsOf(FILE, source).map(({ kind, text, at }) => [kind, text, source[at]]);

    expect(whatRuns).toEqual([
      ['statement', '', ';'],
      ['condition', 'true', 'a'],
      ['condition', 'c', 'd'],
      ['condition', 'd', 'c'],
    ]);
  });
});

test('a loop that would never end throws, with braces or without', () => {
  for (const loop of ['while (true) {}', 'for (;;) ;', 'do ; while (true);', 'for (const x of all()) ;']) {
    const source = `function* all() { for (;;) yield 1; } ${loop}`;
    // In a function, as in a module: names of a script are slow to look up.

    expect(() => vm.runInNewContext(`(() => {${withEnds(FILE, source)}})()`)).toThrow('a loop without an end');
  }
});
