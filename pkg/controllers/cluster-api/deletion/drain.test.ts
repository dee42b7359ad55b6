import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { ApiError } from '../../../kube/errors.ts';
import { PassNotes } from '../../../reconcile/object-pass/pass-notes.ts';
import type { MachinePass, StepDeps } from '../machine-pass.ts';
import { drainStep } from './drain.ts';

const nodeWith = (ready: string) =>
  node((n) => void Object.assign(n, { status: { conditions: [{ type: 'Ready', status: ready }] } }));

// promise: cluster-api/deletion/dead-node-held-up
test.each([
  { cached: 'Unknown', live: 'Unknown', isNodeSilent: true },
  { cached: 'Unknown', live: 'True', isNodeSilent: false },
  { cached: 'Unknown', live: undefined, isNodeSilent: false },
  { cached: 'True', live: 'Unknown', isNodeSilent: false },
])(
  'the kubelet of a Node that the cache shows as $cached, and the API server as $live, is taken for silent: $isNodeSilent',
  async ({ cached, live, isNodeSilent }) => {
    const requests: unknown[] = [];
    const begun: Promise<unknown>[] = [];
    const deps = {
      clock: new FakeClock(),
      rules: { of: () => Promise.resolve(() => ({ behavior: 'leaves', order: 0 })) },
      drain: (request: unknown) => {
        requests.push(request);
        return Promise.resolve({ kind: 'drained' });
      },
      drains: {
        get: () => undefined,
        startOrGet: (_key: unknown, _kind: string, run: (signal: AbortSignal) => Promise<unknown>) =>
          begun.push(run(new AbortController().signal)),
      },
    } as unknown as StepDeps;
    const get = () =>
      live === undefined ? Promise.reject(new ApiError(404, 'NotFound', 'gone')) : Promise.resolve(nodeWith(live));
    const pass = {
      machine: { metadata: { name: 'm', namespace: 'ns', uid: 'u' }, spec: { clusterName: 'c' }, status: {} },
      node: { kind: 'found', node: nodeWith(cached) },
      nodeCluster: { kind: 'reached', target: { reader: { get } }, identity: undefined },
      infrastructure: { kind: 'found', external: { object: { metadata: {} } } },
      observed: {},
      cluster: { metadata: {} },
      older: [],
      notes: new PassNotes(),
    } as unknown as MachinePass;

    await drainStep(deps).run(pass);
    await Promise.all(begun);

    expect(requests).toMatchObject([{ isNodeSilent, isVolumeBlind: true, force: false }]);
  },
);
