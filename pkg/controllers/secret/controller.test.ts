import { expect, test } from '@jest/globals';

import { machineClass, secret, type BuiltSecret } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { reconcileSecret } from './index.ts';
import { SECRET_INDEX, secretIndex } from '../../operator/indexes/secret-references.ts';

const OTHER = 'example.com/other';
const going = (s: BuiltSecret): void => void (s.metadata.deletionTimestamp = '2026-01-01T00:00:00Z');

test.each([
  {
    title: 'that a class names is held',
    finalizers: [OTHER],
    isUsed: true,
    change: undefined,
    want: [OTHER, SECRET_FINALIZER],
  },
  {
    title: 'that is held already is left alone',
    finalizers: [SECRET_FINALIZER],
    isUsed: true,
    change: undefined,
    want: undefined,
  },
  {
    title: 'that is being deleted gets no finalizer',
    finalizers: [OTHER],
    isUsed: true,
    change: going,
    want: undefined,
  },
  {
    title: 'that is being deleted stays while a class names it',
    finalizers: [SECRET_FINALIZER],
    isUsed: true,
    change: going,
    want: undefined,
  },
  {
    title: 'that no class names any more is let go',
    finalizers: [OTHER, SECRET_FINALIZER],
    isUsed: false,
    change: going,
    want: [OTHER],
  },
  { title: 'of somebody else is left alone', finalizers: [OTHER], isUsed: false, change: undefined, want: undefined },
])('a Secret $title', async ({ finalizers, isUsed, change, want }) => {
  const client = new MemoryClient();
  const seen = secret((s) => {
    s.metadata.finalizers = finalizers;
    change?.(s);
  });
  const deps = {
    secrets: new MemoryInformer([seen]),
    classes: new MemoryInformer(isUsed ? [machineClass()] : [], { [SECRET_INDEX]: secretIndex }),
    writer: client,
  };

  await reconcileSecret(deps, 'default/secret-1', new AbortController().signal);

  const { uid, resourceVersion } = seen.metadata;
  const write = {
    intent: 'change',
    what: 'secrets/secret-1',
    uid,
    resourceVersion,
    body: { metadata: { finalizers: want } },
  };
  expect(client.writes).toMatchObject(want === undefined ? [] : [write]);
});
