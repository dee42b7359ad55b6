import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../../test/builders.ts';
import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { PassNotes } from '../../../../work/reconcile/object-pass/pass-notes.ts';
import { stop } from '../../../../work/reconcile/result.ts';
import type { Target } from '../../../../kube/targets/targets.ts';
import type { MachinePass, StepDeps } from '../machine-pass.ts';
import { attachedVolumes, detachStep } from './detach-volumes.ts';

const NOW = '2026-01-01T00:00:00Z';

/** VolumeAttachments of a Node, each of PersistentVolume `pv-NAME`. */
function targetWith(...names: readonly string[]): Target {
  const attachments = names.map((name) => ({
    metadata: { name },
    spec: { source: { persistentVolumeName: `pv-${name}` } },
    status: { attached: true },
  }));
  return { volumeAttachments: { byIndex: () => attachments } } as unknown as Target;
}

/** One run of the step while these are attached, and those of them stay with their Pods; `calls` counts the look at the Pods. */
async function run(
  attached: readonly string[],
  {
    kept = [],
    seconds,
    sinceMs = 0,
    ready = 'True',
  }: { kept?: readonly string[]; seconds?: number; sinceMs?: number; ready?: string } = {},
) {
  const clock = new FakeClock();
  clock.advance(Date.parse(NOW) - clock.now());
  let calls = 0;
  const step = detachStep({
    clock,
    rules: { of: () => Promise.resolve(() => ({ behavior: 'leaves', order: 0 })) },
    keptVolumes: () => {
      calls += 1;
      return Promise.resolve(kept.map((name) => ({ name, id: undefined })));
    },
  } as unknown as Pick<StepDeps, 'clock' | 'rules' | 'keptVolumes'>);
  const waitForNodeVolumeDetachStartTime = new Date(Date.parse(NOW) - sinceMs).toISOString();
  const pass = {
    machine: {
      metadata: { name: 'm', namespace: 'ns' },
      spec: { clusterName: 'c', deletion: { nodeVolumeDetachTimeoutSeconds: seconds } },
      status: { deletion: { waitForNodeVolumeDetachStartTime } },
    },
    node: {
      kind: 'found',
      node: node((n) => void Object.assign(n, { status: { conditions: [{ type: 'Ready', status: ready }] } })),
    },
    nodeCluster: { kind: 'reached', target: targetWith(...attached), identity: undefined },
    infrastructure: { kind: 'found', external: { object: { metadata: {} } } },
    observed: {},
    cluster: { metadata: {} },
    care: 'cared-for',
    signal: new AbortController().signal,
    older: [],
    notes: new PassNotes(),
  } as unknown as MachinePass;
  const result = await step.run(pass);
  const succeeded = pass.older.map(({ type, status }) => `${type} ${status}`);
  return { kind: result.kind, again: pass.notes.resultOf(stop), says: pass.deleting?.message, succeeded, calls };
}

describe('volumes that are attached', () => {
  test('end the step at once when there are none, without a look at the Pods', async () => {
    expect(await run([])).toMatchObject({ kind: 'next', succeeded: ['VolumeDetachSucceeded True'], calls: 0 });
  });

  // promise: cluster-api/deletion/dead-node-held-up
  test('of a Node whose kubelet is silent are not waited for: nobody takes them off', async () => {
    expect(await run(['a'], { ready: 'Unknown' })).toMatchObject({
      kind: 'next',
      succeeded: ['VolumeDetachSucceeded True'],
      calls: 0,
    });
  });

  test('of Pods that stay are not waited for', async () => {
    expect(await run(['a'], { kept: ['pv-a'] })).toMatchObject({
      kind: 'next',
      succeeded: ['VolumeDetachSucceeded True'],
    });
  });

  test('are named, at most five of them, and looked at again in 20 s', async () => {
    expect(await run(['a', 'b', 'c', 'd', 'e', 'f'])).toMatchObject({
      kind: 'stop',
      says: 'Waiting for volumes to be detached: a, b, c, d, e',
      again: { afterMs: 20_000 },
      succeeded: ['VolumeDetachSucceeded False'],
    });
  });

  test.each([
    { what: 'much of the timeout is left', seconds: 60, sinceMs: 0, afterMs: 20_000 },
    { what: 'little of the timeout is left', seconds: 60, sinceMs: 55_000, afterMs: 5_000 },
    { what: 'there is no timeout', seconds: 0, sinceMs: 55_000, afterMs: 20_000 },
  ])('are looked at again after $afterMs ms when $what', async ({ seconds, sinceMs, afterMs }) => {
    expect((await run(['a'], { seconds, sinceMs })).again).toMatchObject({ afterMs });
  });

  test('are waited for no longer than the timeout', async () => {
    expect(await run(['a'], { seconds: 60, sinceMs: 60_000 })).toMatchObject({
      kind: 'next',
      succeeded: [],
      again: stop,
    });
  });
});

test('a volume that the Node reports belongs to a Pod that stays only by its id', () => {
  const it = node((n) => {
    n.status = { ...n.status, volumesAttached: [{ name: 'csi^1', devicePath: '' }] };
  });

  expect(attachedVolumes(it, targetWith(), [{ name: 'pv', id: '1' }])).toEqual([]);
  expect(attachedVolumes(it, targetWith(), [{ name: 'pv', id: '2' }])).toEqual(['csi^1']);
});
