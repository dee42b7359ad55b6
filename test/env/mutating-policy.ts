import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { ObjectMeta } from '../../pkg/apis/meta.ts';
import { eventually } from '../expect/eventually.ts';
import { type CreationChange, SimulatedControlPlane } from '../simulation/served/simulated-control-plane.ts';
import type { TestServer } from './api-server.ts';

const PATH = '/apis/admissionregistration.k8s.io/v1';

/** What a policy changes. */
export interface Mutation extends CreationChange {
  /** Of objects of `machine.sapcloud.io`. */
  readonly kind: string;
  /** An object on whose creation the policy shows, and whether it did. */
  readonly probe: { readonly metadata: Partial<ObjectMeta>; readonly spec: unknown };
  readonly isChanged: (created: unknown) => boolean;
}

/**
 * Lets the API server itself change objects as they are created, as a mutating webhook would; in force when it resolves, and
 * gone when disposed.
 */
export async function mutateOnCreation(server: TestServer, mutation: Mutation): Promise<AsyncDisposable> {
  if (server instanceof SimulatedControlPlane) return server.changeOnCreation(mutation);
  const { namespace, kind, plural, patch, probe, isChanged } = mutation;
  const api = server.connection.api();
  const name = `${namespace}-${plural}`;
  const policy = {
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [
          {
            apiGroups: ['machine.sapcloud.io'],
            apiVersions: ['v1alpha1'],
            operations: ['CREATE'],
            resources: [plural],
          },
        ],
      },
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: expressionOf(patch) } }],
    },
  };
  await api.send('POST', `${PATH}/mutatingadmissionpolicies`, policy);
  const binding = { metadata: { name }, spec: { policyName: name } };
  await api.send('POST', `${PATH}/mutatingadmissionpolicybindings`, binding);
  const isInForce = async (): Promise<boolean> => {
    const body = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind, ...probe };
    const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${namespace}/${plural}?dryRun=All`;
    return isChanged(await api.send('POST', path, body));
  };
  await eventually(isInForce, { timeoutMs: 120_000, describe: 'the policy to be in force' });
  return {
    async [Symbol.asyncDispose]() {
      await api.send('DELETE', `${PATH}/mutatingadmissionpolicybindings/${name}`);
      await api.send('DELETE', `${PATH}/mutatingadmissionpolicies/${name}`);
      await eventually(async () => !(await isInForce()), { timeoutMs: 120_000, describe: 'the policy to be gone' });
      await api.close();
    },
  };
}

/** The same in CEL, which has the literals of JSON. */
function expressionOf(patch: CreationChange['patch']): string {
  const operations = patch.map(({ op, path, value }) => {
    return `JSONPatch{op: "${op}", path: "${path}", value: ${JSON.stringify(value)}}`;
  });
  return `[${operations.join(', ')}]`;
}

/** Gives Machines another value of `label` as they are created: the set that made them selects them no more. */
export function relabelling(namespace: string, label: string): Mutation {
  return {
    namespace,
    kind: 'Machine',
    plural: 'machines',
    patch: [{ op: 'replace', path: `/metadata/labels/${label}`, value: 'lost' }],
    probe: {
      metadata: { name: 'probe', labels: { [label]: 'here' } },
      spec: { class: { kind: 'MachineClass', name: 'c' } },
    },
    isChanged: (created) => (created as Machine).metadata.labels?.[label] === 'lost',
  };
}
