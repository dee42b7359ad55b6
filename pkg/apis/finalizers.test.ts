import { expect, test } from '@jest/globals';

import { hasFinalizer, withFinalizer, withoutFinalizer } from './finalizers.ts';

const OURS = 'example.com/ours';

function objectWith(finalizers?: string[]) {
  return { metadata: { ...(finalizers && { finalizers }) } };
}

test.each<[string[] | undefined, boolean, string[], string[]]>([
  [undefined, false, [OURS], []],
  [[], false, [OURS], []],
  [[OURS], true, [OURS], []],
  [['a', 'b'], false, ['a', 'b', OURS], ['a', 'b']],
  [['a', OURS, 'b'], true, ['a', OURS, 'b'], ['a', 'b']],
  [[OURS, OURS], true, [OURS, OURS], []],
])('%j: has the finalizer: %j; with it: %j; without it: %j', (finalizers, has, withIt, withoutIt) => {
  const object = objectWith(finalizers);
  const before = structuredClone(object);

  expect(hasFinalizer(object, OURS)).toBe(has);
  expect(withFinalizer(object, OURS)).toEqual(withIt);
  expect(withoutFinalizer(object, OURS)).toEqual(withoutIt);
  expect(object).toEqual(before);
});
