import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { ClusterAPICluster } from '../../worlds/cluster-api/api/cluster.ts';
import type { ClusterAPIMachine } from '../../worlds/cluster-api/api/machine.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, strategicPatch } from './patch.ts';
import type { Resource } from '../../apis/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../../worlds/cluster-api/api/resources.ts';
import { wireChange } from './wire-change.ts';

const metadata = { name: 'o', namespace: 'ns', uid: 'u', resourceVersion: '7', creationTimestamp: '' };
const preconditions = { uid: 'u', resourceVersion: '7' };
const [MACHINES, CLUSTERS] = [clusterAPIMachines.older, clusterAPIClusters.older];
const GROUP = 'infrastructure.cluster.x-k8s.io';
const ref = { apiGroup: GROUP, kind: 'SimMachine', name: 'i', version: 'v1' };

function older<T>(resource: T | undefined): T {
  if (resource === undefined) throw new Error('there is an older version');
  return resource;
}

// promise: cluster-api/versions/patches-name-change-either
describe('in the older version a patch names what it changes, and nothing else', () => {
  const machine: ClusterAPIMachine = {
    metadata: { ...metadata, labels: { a: 'b' } },
    spec: { infrastructureRef: ref, deletion: { nodeDrainTimeoutSeconds: 90 } },
    status: {
      nodeRef: { name: 'n' },
      deprecated: { v1beta1: { failureReason: 'R', conditions: [{ type: 'Ready', status: 'True' }] } },
    },
  };
  const cluster: ClusterAPICluster = {
    metadata,
    status: { failureDomains: [{ name: 'a', controlPlane: true }, { name: 'b' }] },
  };
  const sent = { metadata: preconditions };
  test.each([
    {
      what: 'metadata and what both call the same',
      change: wireChange(
        older(MACHINES),
        mergePatchIfUnchanged(machine, {
          metadata: { labels: { a: null, c: 'd' }, finalizers: ['f'] },
          spec: { providerID: 'p', bootstrap: { dataSecretName: 's' } },
        }),
      ),
      want: {
        metadata: { ...preconditions, labels: { a: null, c: 'd' }, finalizers: ['f'] },
        spec: { providerID: 'p', bootstrap: { dataSecretName: 's' } },
      },
    },
    {
      what: 'a status',
      change: wireChange(
        older(MACHINES),
        statusPatch(machine, {
          conditions: [],
          initialization: { infrastructureProvisioned: true },
          nodeRef: { name: 'n-2' },
          deprecated: { v1beta1: { failureReason: null } },
        }),
      ),
      want: {
        ...sent,
        status: {
          v1beta2: { conditions: [] },
          infrastructureReady: true,
          nodeRef: { name: 'n-2' },
          failureReason: null,
        },
      },
    },
    {
      what: 'a timeout that goes',
      change: wireChange(older(MACHINES), mergePatch(machine, { spec: { deletion: null } })),
      want: { metadata: { uid: 'u' }, spec: { nodeDrainTimeout: null } },
    },
    {
      what: 'failure domains, of which one goes',
      change: wireChange(
        older(CLUSTERS),
        statusPatch(cluster, { failureDomains: [{ name: 'a', controlPlane: false }] }),
      ),
      want: { ...sent, status: { failureDomains: { a: { controlPlane: false }, b: null } } },
    },
    {
      what: 'nothing, of what it cannot say',
      change: wireChange(older(MACHINES), statusPatch(machine, { failureDomain: 'az1' })),
      want: undefined,
    },
  ])('$what', ({ change, want }) => {
    expect(change).toEqual(want);
  });

  test('and one that was made of nothing is refused: what has to go cannot be told', () => {
    expect(() => wireChange(older(MACHINES), strategicPatch(machine, {}))).toThrow('a strategic patch of machines');
    expect(() => wireChange(older(MACHINES), { type: 'merge', body: {} })).toThrow('cannot be converted to v1beta1');
  });
});

const text = fc.stringMatching(/^[a-z]{1,3}$/);
const maybe = <T>(members: { readonly [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(members, { requiredKeys: [] });
const domains = fc.uniqueArray(fc.record({ name: text, controlPlane: fc.boolean() }), { selector: ({ name }) => name });
const failures = maybe({ failureReason: text, conditions: fc.array(fc.record({ type: text, status: text })) });
const statuses = maybe({
  initialization: maybe({ infrastructureProvisioned: fc.boolean(), bootstrapDataSecretCreated: fc.boolean() }),
  nodeRef: fc.record({ name: text }),
  phase: text,
  deprecated: fc.record({ v1beta1: failures }),
  failureDomains: domains,
});
/** Members that are there may also be asked to go. */
const changes = statuses.chain((status) =>
  fc
    .subarray(Object.keys(status))
    .map((gone) => ({ ...status, ...Object.fromEntries(gone.map((name) => [name, null])) })),
);

/** RFC 7386, as the API server does it. */
function patched(target: unknown, change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) return change;
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete result[name];
    else result[name] = patched(result[name], value);
  }
  return result;
}

test.each([
  { kind: 'Machine', resource: older(MACHINES) as Resource<never> },
  { kind: 'Cluster', resource: older(CLUSTERS) as Resource<never> },
])('a patch of a $kind comes to the same, whether it is translated or what it makes of the object', ({ resource }) => {
  const wire = (object: object): object => resource.toWire?.(object) ?? object;
  fc.assert(
    fc.property(statuses, changes, (status, change) => {
      const base = { metadata, status };
      const sent = wireChange(resource, statusPatch(base, change));
      const want = wire(patched(base, { status: change }) as object);
      expect(sent === undefined ? wire(base) : patched(wire(base), sent)).toEqual(want);
    }),
  );
});
