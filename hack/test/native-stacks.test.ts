import { describe, expect, test } from '@jest/globals';

import { formatNatively, type Stacks } from './native-stacks.ts';

/** Throws at a line and a column that only its own text knows. */
function fail(reason: string, times: number): never {
  throw new TypeError(`${reason} ${times}`);
}

describe('stacks of errors in tests', () => {
  test('name the lines and columns of the sources, types and all', () => {
    let stack = '';
    try {
      fail('nothing', 2);
    } catch (err) {
      stack = (err as Error).stack ?? '';
    }

    expect(stack.split('\n').slice(0, 2)).toEqual([
      'TypeError: nothing 2',
      `    at fail (${import.meta.filename}:7:9)`,
    ]);
  });

  test('are not formatted by jest, which looks for source maps', () => {
    const usual = (): string => 'usual';
    const errors: Stacks = { prepareStackTrace: usual };
    formatNatively(errors);
    const support = { formatStackTrace: () => 'mapped' };

    errors.prepareStackTrace = support.formatStackTrace.bind(support);

    expect(errors.prepareStackTrace).toBe(usual);
  });

  test('are formatted by V8 in this very file', () => {
    // Of jest's own realm, in which Node looks for a formatter.
    const { constructor: errors } = Object.getPrototypeOf(DOMException.prototype) as { constructor: Stacks };

    expect(errors).not.toBe(Error);
    expect(errors.prepareStackTrace?.name).not.toBe('bound formatStackTrace');
  });

  test('may be read by those who set a formatter for a moment', () => {
    const errors: Stacks = {};
    formatNatively(errors);
    const own = (): string => 'own';

    errors.prepareStackTrace = own;

    expect(errors.prepareStackTrace).toBe(own);
  });
});
