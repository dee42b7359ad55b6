import { describe, expect, test } from '@jest/globals';

import { parseYaml } from './yaml.ts';

const TOKEN = 'abcdef.0123456789abcdef';

/** All that a log would show of an error: its message, its stack, its members, those of its causes. */
function allOf(err: unknown): string {
  if (!(err instanceof Error)) return String(err);
  return [err.message, err.stack, JSON.stringify(err), allOf(err.cause)].join('\n');
}

function errorOf(text: string): unknown {
  try {
    return parseYaml(text);
  } catch (err) {
    return err;
  }
}

describe('YAML with a mistake', () => {
  test.each([
    {
      mistake: 'a wrong indentation',
      text: `users:\n- name: u\n  user:\n    token: ${TOKEN}\n   x: y\n`,
      at: /^line 5/,
    },
    { mistake: 'a missing quote', text: `token: "${TOKEN}\n`, at: /^line 2, column 1: deficient indentation$/ },
    { mistake: 'a tab', text: `user:\n\ttoken: ${TOKEN}\n`, at: /^line 2/ },
    { mistake: 'an alias of nothing', text: `token: *${TOKEN}\n`, at: /: not valid YAML$/ },
    { mistake: 'an unknown tag', text: `token: !${TOKEN} x\n`, at: /: not valid YAML$/ },
    { mistake: 'an unknown escape', text: `token: "\\q${TOKEN}"\n`, at: /^line 1, .*unknown escape/ },
    { mistake: 'a key twice', text: `token: a\ntoken: ${TOKEN}\n`, at: /^line 2, column 1: duplicated mapping key$/ },
    { mistake: 'two documents', text: `a: ${TOKEN}\n---\nb: ${TOKEN}\n`, at: /single document/ },
  ])('is refused with its place and without its text: $mistake', ({ text, at }) => {
    const err = errorOf(text);

    expect(err).toMatchObject({ name: 'YamlError', message: expect.stringMatching(at) });
    expect(allOf(err)).not.toContain(TOKEN.slice(0, 6));
    expect(allOf(err)).not.toContain(TOKEN.slice(7, 12));
  });

  test('has no aliases where it must not have any, however few', () => {
    const text = `a: &a [x]\nb: *a\n`;

    expect(() => parseYaml(text, { mayAlias: false })).toThrow('line 2, column 5: aliases are not allowed');
    expect(parseYaml(text)).toEqual({ a: ['x'], b: ['x'] });
  });

  test('without a mistake is read', () => {
    expect(parseYaml('a: [1, {b: c}]')).toEqual({ a: [1, { b: 'c' }] });
  });
});
