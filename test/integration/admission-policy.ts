import { randomBytes } from 'node:crypto';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { eventually } from '../expect/eventually.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';

/** What an API server is to refuse. */
export interface Policy {
  readonly resource: { readonly group: string; readonly version: string; readonly plural: string };
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  /** CEL, as in a ValidatingAdmissionPolicy; what does not hold is refused. */
  readonly validations: readonly { readonly expression: string; readonly message: string }[];
  /** CEL: the requests that are judged. The server is shared with other tests. */
  readonly only: string;
  /** A request that is refused as soon as the policy is in force. */
  readonly probe: { readonly path: string; readonly body: unknown };
}

/** Makes the API server refuse things, as a cluster's policies do, until it is disposed of. In force when it resolves. */
export async function refuse(connection: Connection, policy: Policy): Promise<AsyncDisposable> {
  const name = `test-${randomBytes(4).toString('hex')}`;
  const api = connection.api();
  const { group, version, plural } = policy.resource;
  const metadata = { name };
  const send = async (path: string, spec: unknown): Promise<void> => {
    const answer = await api.request(`${GROUP}/${path}`, { method: 'POST', body: { metadata, spec } });
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const rule = { apiGroups: [group], apiVersions: [version], resources: [plural], operations: policy.operations };
  await send('validatingadmissionpolicies', {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [rule] },
    validations: policy.validations,
    matchConditions: [{ name: 'only', expression: policy.only }],
  });
  await send('validatingadmissionpolicybindings', { policyName: name, validationActions: ['Deny'] });
  const { probe } = policy;
  const isRefused = async (): Promise<boolean> => {
    const contentType = 'application/merge-patch+json';
    return (
      (await api.request(`${probe.path}?dryRun=All`, { method: 'PATCH', body: probe.body, contentType })).status === 422
    );
  };
  await eventually(isRefused, { timeoutMs: 30_000, describe: 'the policy to be in force' });
  return {
    async [Symbol.asyncDispose](): Promise<void> {
      for (const path of ['validatingadmissionpolicybindings', 'validatingadmissionpolicies']) {
        await api.request(`${GROUP}/${path}/${name}`, { method: 'DELETE' });
      }
      await api.close();
    },
  };
}
