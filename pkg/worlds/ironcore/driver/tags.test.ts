import { expect, test } from '@jest/globals';

import {
  IRONCORE_CLUSTER_ANNOTATION,
  isOf,
  IRONCORE_MACHINE_UID_LABEL,
  IRONCORE_NAMESPACE_LABEL,
  placeIn,
  ironCoreProviderID,
} from './tags.ts';

const MACHINE = { cluster: 'c', namespace: 'shoot', name: 'm', uid: 'u', providerID: undefined };
const LABELS = { 'shoot-name': 's' };

function named(name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}) {
  const metadata = {
    name,
    namespace: 'ic',
    uid: 'x',
    resourceVersion: '1',
    creationTimestamp: '',
    labels,
    annotations,
  };
  return { metadata };
}

const OURS = { [IRONCORE_NAMESPACE_LABEL]: 'shoot', [IRONCORE_MACHINE_UID_LABEL]: 'u' };

test.each([
  ['one with all tags', named('m', OURS, { [IRONCORE_CLUSTER_ANNOTATION]: 'c' }), true],
  ['one of another cluster', named('m', OURS, { [IRONCORE_CLUSTER_ANNOTATION]: 'd' }), false],
  ['one of another Machine of this name', named('m', { ...OURS, [IRONCORE_MACHINE_UID_LABEL]: 'v' }), false],
  ['one of another namespace', named('m', { [IRONCORE_NAMESPACE_LABEL]: 'other' }), false],
  ['one of another name', named('n', OURS), false],
  ['one that carries the labels of the class alone', named('m', LABELS), true],
  ['one that carries nothing', named('m'), false],
])("%s is the machine's: %#", (_what, object, isTheirs) => {
  expect(isOf(object, MACHINE, LABELS)).toBe(isTheirs);
});

test("one without labels is the machine whose Machine has recorded it, and nobody's of a class without labels", () => {
  const providerID = ironCoreProviderID('ic', 'm');

  expect([
    isOf(named('m'), { ...MACHINE, providerID }, LABELS),
    isOf(named('m'), { ...MACHINE, providerID: ironCoreProviderID('other', 'm') }, LABELS),
    isOf(named('m'), MACHINE, {}),
  ]).toEqual([true, false, false]);
});

test('where a Machine is, is read from provider ids of ours alone', () => {
  expect(
    ['ironcore://ic/m', 'ironcore://ic', 'ironcore:///m', 'ironcore://a/b/c', 'aws:///ic/m', undefined].map(placeIn),
  ).toEqual([{ namespace: 'ic', name: 'm' }, undefined, undefined, undefined, undefined, undefined]);
});
