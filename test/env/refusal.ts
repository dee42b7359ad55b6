import { randomBytes } from 'node:crypto';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { eventually } from '../expect/eventually.ts';
import { connect } from './environment.ts';

/** What a real API server is to refuse. */
export interface RefusalOptions {
  /** Plural name, group and version of the resource: `{ resource: 'nodes' }`. */
  readonly resource: string;
  readonly group?: string;
  readonly version?: string;
  readonly operations?: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  /** CEL: which requests are concerned; keep it to objects of the test. */
  readonly concerns: string;
  /** CEL: what is let through all the same; nothing by default. */
  readonly unless?: string;
  /** What the server says; it answers 422 Invalid. */
  readonly message?: string;
  /** A request that is concerned and refused, as a dry run: it shows that the policy is in force. */
  readonly probe: { readonly method: 'PATCH' | 'POST'; readonly path: string; readonly body: unknown };
}

/**
 * Makes the API server refuse some writes by a ValidatingAdmissionPolicy, as a webhook of somebody else would, from the moment this
 * resolves until it is disposed of: `await using refusal = await refuse({ … })`.
 */
export async function refuse(options: RefusalOptions, connection: Connection = connect()): Promise<AsyncDisposable> {
  const { resource, group = '', version = 'v1', operations = ['CREATE', 'UPDATE'], probe } = options;
  const name = `refuse-${randomBytes(5).toString('hex')}`;
  const api = connection.api();
  const root = '/apis/admissionregistration.k8s.io/v1';
  const policies = `${root}/validatingadmissionpolicies`;
  const bindings = `${root}/validatingadmissionpolicybindings`;
  const apply = async (path: string, body: unknown): Promise<void> => {
    const { status, body: answer } = await api.request(path, { method: 'POST', body });
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${JSON.stringify(answer)}`);
  };
  await apply(policies, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [{ apiGroups: [group], apiVersions: [version], operations, resources: [resource] }],
      },
      matchConditions: [{ name: 'concerns', expression: options.concerns }],
      validations: [{ expression: options.unless ?? 'false', message: options.message ?? 'refused by a test' }],
    },
  });
  await apply(bindings, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  const contentType = probe.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  await eventually(
    async () => {
      const answer = await api.request(`${probe.path}?dryRun=All`, {
        method: probe.method,
        contentType,
        body: probe.body,
      });
      if (answer.status !== 422) throw new Error(`not refused yet: ${answer.status} ${JSON.stringify(answer.body)}`);
    },
    { describe: `policy ${name} to be in force` },
  );
  return {
    async [Symbol.asyncDispose]() {
      for (const path of [bindings, policies]) await api.request(`${path}/${name}`, { method: 'DELETE' });
      await api.close();
    },
  };
}
