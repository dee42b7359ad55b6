import { expect, test } from '@jest/globals';

import { node } from '../../../../../test/builders.ts';
import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import type { DrainRequest } from '../../../../drain/drain.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { PassNotes } from '../../../../work/reconcile/object-pass/pass-notes.ts';
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
    const requests: DrainRequest[] = [];
    const deps = {
      clock: new FakeClock(),
      rules: { of: () => Promise.resolve(() => ({ behavior: 'leaves', order: 0 })) },
      drains: {
        advance: () => undefined,
        attempts: new Map(),
        begin: (_attempt: unknown, request: DrainRequest) => void requests.push(request),
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

    expect(requests).toMatchObject([{ isVolumeBlind: true, force: false }]);
    expect(await requests[0]?.isNodeSilent?.(new AbortController().signal)).toBe(isNodeSilent);
  },
);
