import vm from 'node:vm';

import { expect, test } from '@jest/globals';

import { compileOnce } from './compiled-once.ts';

/** A `vm` that notes what it is given. */
function watched(): {
  readonly own: Pick<typeof vm, 'SourceTextModule' | 'compileFunction'>;
  readonly given: boolean[];
} {
  const given: boolean[] = [];
  const own = {
    SourceTextModule: new Proxy(vm.SourceTextModule, {
      construct(target, [code, options]: [string, vm.SourceTextModuleOptions]) {
        given.push(options.cachedData !== undefined);
        return new target(code, options);
      },
    }),
    compileFunction: ((code, params, options) => {
      given.push(options?.cachedData !== undefined);
      return vm.compileFunction(code, params, options);
    }) satisfies typeof vm.compileFunction,
  };
  compileOnce(own);
  return { own, given };
}

test('a module is compiled once, loaded anew each time, and another text of the same name and length is another module', async () => {
  const { own, given } = watched();
  const load = async (code: string): Promise<{ state: { n: number } }> => {
    const module = new own.SourceTextModule(code, { identifier: 'one.js' });
    await module.link(() => {
      throw new Error('nothing is imported');
    });
    await module.evaluate();
    return module.namespace as { state: { n: number } };
  };

  const first = await load('export const state = { n: 1 };');
  const again = await load('export const state = { n: 1 };');
  const other = await load('export const state = { n: 2 };');

  expect(given).toEqual([false, true, false]);
  expect([first.state.n, again.state.n, other.state.n]).toEqual([1, 1, 2]);
  expect(again.state).not.toBe(first.state);
});

test('a function is compiled once, and another text of the same name and length is another function', () => {
  const { own, given } = watched();
  const call = (code: string): unknown =>
    (own.compileFunction(code, ['a'], { filename: 'one.cjs' }) as (a: number) => unknown)(1);

  expect([call('return a + 1'), call('return a + 1'), call('return a + 2')]).toEqual([2, 2, 3]);
  expect(given).toEqual([false, true, false]);
});

test('what V8 does not take any more is compiled anew', () => {
  const own = { compileFunction: vm.compileFunction, SourceTextModule: refusing(vm.SourceTextModule) };
  compileOnce(own);

  const modules = [1, 2].map(() => new own.SourceTextModule('export const n = 1;', { identifier: 'one.js' }));

  expect(modules.map(({ identifier }) => identifier)).toEqual(['one.js', 'one.js']);
});

/** Takes nothing that was compiled before. */
function refusing(SourceTextModule: typeof vm.SourceTextModule): typeof vm.SourceTextModule {
  return new Proxy(SourceTextModule, {
    construct(target, [code, options]: [string, vm.SourceTextModuleOptions]) {
      if (options.cachedData !== undefined)
        throw Object.assign(new Error('rejected'), { code: 'ERR_VM_MODULE_CACHED_DATA_REJECTED' });
      return new target(code, options);
    },
  });
}
