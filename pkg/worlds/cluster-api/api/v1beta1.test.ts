import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { ClusterAPICluster } from './cluster.ts';
import type { ClusterAPIMachine } from './machine.ts';
import {
  clusterFromV1beta1,
  clusterToV1beta1,
  machineFromV1beta1,
  machineToV1beta1,
  machineToV1beta2,
} from './v1beta1.ts';

const metadata = { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
const GROUP = 'infrastructure.cluster.x-k8s.io';
const reference = { apiVersion: `${GROUP}/v1alpha7`, kind: 'SimMachine', name: 'i', namespace: 'ns' };
const named = { apiGroup: GROUP, kind: 'SimMachine', name: 'i', version: 'v1alpha7' };
const condition = { type: 'Ready', status: 'True', reason: 'Up', message: '', lastTransitionTime: 't' };
const older = { type: 'Ready', status: 'False', severity: 'Info', reason: 'Down', lastTransitionTime: 't' };

test('when hooks began to be waited for cannot be said, and is not sent again and again', () => {
  const times = { nodeDrainStartTime: 't', waitForPreDrainHookStartTime: 't', waitForPreTerminateHookStartTime: 't' };

  expect(machineToV1beta1({ status: { deletion: times } })).toEqual({
    status: { deletion: { nodeDrainStartTime: 't' } },
  });
});

test('nor what kubelets tell of swap', () => {
  const status = { nodeInfo: { osImage: 'o', swap: { capacity: 1 } } };

  expect(machineToV1beta1({ status })).toEqual({ status: { nodeInfo: { osImage: 'o' } } });
});

/** What of the older version says what in the newer one, and the other way round. */
const MACHINES: readonly { readonly what: string; readonly v1beta1: object; readonly v1beta2: object }[] = [
  {
    what: 'references',
    v1beta1: { spec: { infrastructureRef: reference, bootstrap: { configRef: reference, dataSecretName: 's' } } },
    v1beta2: { spec: { infrastructureRef: named, bootstrap: { configRef: named, dataSecretName: 's' } } },
  },
  {
    what: 'timeouts',
    v1beta1: { spec: { nodeDrainTimeout: '1m30s', nodeVolumeDetachTimeout: '10s', nodeDeletionTimeout: '0s' } },
    v1beta2: {
      spec: {
        deletion: { nodeDrainTimeoutSeconds: 90, nodeVolumeDetachTimeoutSeconds: 10, nodeDeletionTimeoutSeconds: 0 },
      },
    },
  },
  {
    what: 'what was reached',
    v1beta1: { status: { infrastructureReady: true, bootstrapReady: false, phase: 'Running' } },
    v1beta2: {
      status: {
        initialization: { infrastructureProvisioned: true, bootstrapDataSecretCreated: false },
        phase: 'Running',
      },
    },
  },
  {
    what: 'the Node',
    v1beta1: { status: { nodeRef: { apiVersion: 'v1', kind: 'Node', name: 'n' } } },
    v1beta2: { status: { nodeRef: { name: 'n' } } },
  },
  {
    what: 'conditions of both contracts, and failures',
    v1beta1: {
      status: {
        v1beta2: { conditions: [condition] },
        conditions: [older],
        failureReason: 'InvalidConfiguration',
        failureMessage: 'no such image',
      },
    },
    v1beta2: {
      status: {
        conditions: [condition],
        deprecated: {
          v1beta1: {
            conditions: [older],
            failureReason: 'InvalidConfiguration',
            failureMessage: 'no such image',
          },
        },
      },
    },
  },
  {
    what: 'what both call the same',
    v1beta1: {
      spec: { clusterName: 'c', version: 'v1.33.0', providerID: 'p', failureDomain: 'az', readinessGates: [], odd: 1 },
      status: { addresses: [], deletion: { nodeDrainStartTime: 't' }, lastUpdated: 't', nodeInfo: { osImage: 'o' } },
    },
    v1beta2: {
      spec: { clusterName: 'c', version: 'v1.33.0', providerID: 'p', failureDomain: 'az', readinessGates: [], odd: 1 },
      status: { addresses: [], deletion: { nodeDrainStartTime: 't' }, lastUpdated: 't', nodeInfo: { osImage: 'o' } },
    },
  },
];

const CLUSTERS: typeof MACHINES = [
  {
    what: 'references',
    v1beta1: { spec: { infrastructureRef: reference, controlPlaneRef: reference, paused: true } },
    v1beta2: { spec: { infrastructureRef: named, controlPlaneRef: named, paused: true } },
  },
  {
    what: 'what was reached',
    v1beta1: { status: { infrastructureReady: true, controlPlaneReady: true, phase: 'Provisioned' } },
    v1beta2: {
      status: {
        initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
        phase: 'Provisioned',
      },
    },
  },
  {
    what: 'failure domains',
    v1beta1: { status: { failureDomains: { a: { controlPlane: true }, b: { attributes: { x: 'y' } } } } },
    v1beta2: {
      status: {
        failureDomains: [
          { name: 'a', controlPlane: true },
          { name: 'b', attributes: { x: 'y' } },
        ],
      },
    },
  },
  {
    what: 'conditions of both contracts',
    v1beta1: { status: { v1beta2: { conditions: [condition] }, conditions: [older] } },
    v1beta2: { status: { conditions: [condition], deprecated: { v1beta1: { conditions: [older] } } } },
  },
];

describe('in both versions', () => {
  test.each(MACHINES)('a Machine says $what', ({ v1beta1, v1beta2 }) => {
    const read = machineFromV1beta1({ apiVersion: 'cluster.x-k8s.io/v1beta1', metadata, ...structuredClone(v1beta1) });

    expect(read).toEqual({ apiVersion: 'cluster.x-k8s.io/v1beta2', metadata, ...v1beta2 });
    expect(machineToV1beta1({ metadata, ...v1beta2 })).toEqual({ metadata, ...v1beta1 });
  });

  test.each(CLUSTERS)('a Cluster says $what', ({ v1beta1, v1beta2 }) => {
    const read = clusterFromV1beta1({ apiVersion: 'cluster.x-k8s.io/v1beta1', metadata, ...structuredClone(v1beta1) });

    expect(read).toEqual({ apiVersion: 'cluster.x-k8s.io/v1beta2', metadata, ...v1beta2 });
    expect(clusterToV1beta1({ metadata, ...v1beta2 })).toEqual({ metadata, ...v1beta1 });
  });
});

test.each([
  { duration: '500ms', seconds: 1 },
  { duration: '1.5s', seconds: 2 },
  { duration: '1h0m0s', seconds: 3_600 },
  { duration: '-5s', seconds: 0 },
  { duration: '2562047h', seconds: 2_147_483_647 },
  { duration: 'soon', seconds: undefined },
  { duration: '', seconds: undefined },
  { duration: 10, seconds: undefined },
])('a timeout of $duration is one of $seconds seconds', ({ duration, seconds }) => {
  const { spec } = machineFromV1beta1({ metadata, spec: { nodeDrainTimeout: duration } } as ClusterAPIMachine);

  expect(spec?.deletion?.nodeDrainTimeoutSeconds).toBe(seconds);
});

test.each([
  { says: {}, means: undefined },
  { says: { kind: 'SimMachine', name: '' }, means: undefined },
  { says: { name: 'i' }, means: undefined },
  { says: 'SimMachine', means: undefined },
  { says: { kind: 'SimMachine', name: 'i' }, means: { apiGroup: '', kind: 'SimMachine', name: 'i' } },
  {
    says: { apiVersion: 'v1', kind: 'Pod', name: 'i' },
    means: { apiGroup: '', kind: 'Pod', name: 'i', version: 'v1' },
  },
])('a reference that says $says names $means', ({ says, means }) => {
  const machine = { metadata, spec: { infrastructureRef: says } } as unknown as ClusterAPIMachine;

  expect(machineFromV1beta1(machine).spec?.infrastructureRef).toEqual(means);
});

test('what the older version cannot say is left out, and a reference gets the usual version', () => {
  const machine = {
    metadata: { name: 'm' },
    spec: { minReadySeconds: 5, infrastructureRef: { apiGroup: GROUP, kind: 'SimMachine', name: 'i' } },
    status: { failureDomain: 'az1' },
  };

  expect(machineToV1beta1(machine)).toEqual({
    metadata: { name: 'm' },
    spec: { infrastructureRef: { apiVersion: `${GROUP}/v1beta1`, kind: 'SimMachine', name: 'i' } },
    status: {},
  });
});

test('the newer version says nothing of versions in references', () => {
  const { version: _version, ...bare } = named;
  const spec = { infrastructureRef: named, bootstrap: { configRef: named }, version: 'v1.33.0' };

  expect(machineToV1beta2({ metadata, spec })).toEqual({
    metadata,
    spec: { infrastructureRef: bare, bootstrap: { configRef: bare }, version: 'v1.33.0' },
  });
  expect(machineToV1beta2({ metadata, spec: { bootstrap: { dataSecretName: 's' } } })).toEqual({
    metadata,
    spec: { bootstrap: { dataSecretName: 's' } },
  });
  expect(machineToV1beta2({ metadata })).toEqual({ metadata });
});

const maybe = (members: Readonly<Record<string, fc.Arbitrary<unknown>>>, least = 0) =>
  fc.record(members, { requiredKeys: [] }).filter((one) => Object.keys(one).length >= least);
const text = fc.stringMatching(/^[a-z]{1,8}$/);
const ref = fc.record({ apiGroup: text, kind: text, name: text, version: text });
const seconds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const conditions = fc.array(fc.record({ type: text, status: text }));
const deprecated = maybe({ conditions, failureReason: text, failureMessage: text }, 1).map((v1beta1) => ({ v1beta1 }));
const machines = maybe({
  spec: maybe({
    clusterName: text,
    infrastructureRef: ref,
    bootstrap: maybe({ configRef: ref, dataSecretName: text }),
    failureDomain: text,
    deletion: maybe(
      {
        nodeDrainTimeoutSeconds: seconds,
        nodeVolumeDetachTimeoutSeconds: seconds,
        nodeDeletionTimeoutSeconds: seconds,
      },
      1,
    ),
  }),
  status: maybe({
    conditions,
    deprecated,
    initialization: maybe({ infrastructureProvisioned: fc.boolean(), bootstrapDataSecretCreated: fc.boolean() }, 1),
    nodeRef: fc.record({ name: text }),
    phase: text,
    addresses: fc.array(fc.record({ type: text, address: text })),
    deletion: maybe({ nodeDrainStartTime: text }),
  }),
});
const clusters = maybe({
  spec: maybe({ paused: fc.boolean(), infrastructureRef: ref, controlPlaneRef: ref }),
  status: maybe({
    conditions,
    deprecated,
    initialization: maybe({ infrastructureProvisioned: fc.boolean(), controlPlaneInitialized: fc.boolean() }, 1),
    failureDomains: fc
      .uniqueArray(fc.record({ name: text, controlPlane: fc.boolean() }), { selector: ({ name }) => name })
      .map((all) => all.toSorted((a, b) => (a.name < b.name ? -1 : 1))),
    phase: text,
  }),
});
/** Anything at all, where objects are expected. */
const nonsense = fc.oneof(
  fc.anything(),
  maybe({
    bootstrap: fc.anything(),
    infrastructureRef: fc.anything(),
    nodeDrainTimeout: fc.anything(),
    nodeRef: fc.anything(),
    v1beta2: fc.anything(),
    failureDomains: fc.anything(),
  }),
);

// promise: cluster-api/versions/version-says-said-comes
describe('nothing is lost on the way', () => {
  test('of a Machine', () => {
    fc.assert(
      fc.property(machines, (machine) => {
        const wire = structuredClone(machineToV1beta1({ metadata, ...machine })) as ClusterAPIMachine;
        expect(machineFromV1beta1(wire)).toEqual({ apiVersion: 'cluster.x-k8s.io/v1beta2', metadata, ...machine });
      }),
    );
  });

  test('of a Cluster', () => {
    fc.assert(
      fc.property(clusters, (cluster) => {
        const wire = structuredClone(clusterToV1beta1({ metadata, ...cluster })) as ClusterAPICluster;
        expect(clusterFromV1beta1(wire)).toEqual({ apiVersion: 'cluster.x-k8s.io/v1beta2', metadata, ...cluster });
      }),
    );
  });

  test('and whatever a server has stored is read', () => {
    fc.assert(
      fc.property(nonsense, nonsense, (spec, status) => {
        const object = { metadata, spec, status } as unknown;
        expect(() => machineFromV1beta1({ ...(object as ClusterAPIMachine) })).not.toThrow();
        expect(() => clusterFromV1beta1({ ...(object as ClusterAPICluster) })).not.toThrow();
      }),
    );
  });
});
