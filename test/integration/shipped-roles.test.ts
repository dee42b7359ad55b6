import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { connect, namespace } from '../env/environment.ts';
import { allows, grant } from './shipped-roles.ts';

interface Attributes {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
}

function mayMachinist(api: Api, resourceAttributes: Attributes): Promise<boolean> {
  return allows(api, { user: 'machinist', resourceAttributes });
}

/** With words for the title of a test: `patch machines/status machine-controller`. */
function titled<T extends Attributes>(attributes: T): { readonly what: string; readonly attributes: T } {
  const { verb, resource, subresource, name } = attributes;
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  return { what: [verb, path, name].filter((part) => part !== undefined).join(' '), attributes };
}

describe('the shipped roles', () => {
  const machine = { group: 'machine.sapcloud.io', resource: 'machines' };
  const lease = { group: 'coordination.k8s.io', resource: 'leases' };

  const inControl: readonly (Attributes & { readonly allowed: boolean })[] = [
    { ...machine, verb: 'create', allowed: true },
    { ...machine, verb: 'patch', subresource: 'status', allowed: true },
    { ...machine, verb: 'update', allowed: false },
    { ...machine, verb: 'deletecollection', allowed: false },
    { group: 'machine.sapcloud.io', resource: 'machineclasses', verb: 'delete', allowed: false },
    { group: 'machine.sapcloud.io', resource: 'machinedeployments', verb: 'create', allowed: false },
    { resource: 'secrets', verb: 'patch', allowed: true },
    { resource: 'secrets', verb: 'create', allowed: false },
    { resource: 'secrets', verb: 'delete', allowed: false },
    { resource: 'configmaps', verb: 'get', allowed: false },
    { ...lease, name: 'machine-controller', verb: 'update', allowed: true },
    { ...lease, name: 'machine-controller-manager', verb: 'watch', allowed: true },
    { ...lease, name: 'somebody-else', verb: 'update', allowed: false },
    { ...lease, name: 'machine-controller', verb: 'delete', allowed: false },
  ];
  test.each(inControl.map(titled))(
    'allow $what in our namespace only: $attributes.allowed',
    async ({ attributes: { allowed, ...attributes } }) => {
      await using ns = await namespace();
      const api = connect().api();
      await grant(api, 'control', ns.name);

      const here = await mayMachinist(api, { ...attributes, namespace: ns.name });
      const elsewhere = await mayMachinist(api, { ...attributes, namespace: 'default' });

      await api.close();
      expect({ here, elsewhere }).toEqual({ here: allowed, elsewhere: false });
    },
  );

  const inTarget: readonly (Attributes & { readonly allowed: boolean })[] = [
    { resource: 'nodes', verb: 'delete', allowed: true },
    { resource: 'nodes', subresource: 'status', verb: 'patch', allowed: true },
    { resource: 'nodes', verb: 'create', allowed: false },
    { resource: 'nodes', subresource: 'proxy', verb: 'get', allowed: false },
    { resource: 'pods', subresource: 'eviction', verb: 'create', namespace: 'default', allowed: true },
    { resource: 'pods', subresource: 'exec', verb: 'create', namespace: 'default', allowed: false },
    { resource: 'pods', verb: 'create', namespace: 'default', allowed: false },
    { resource: 'secrets', verb: 'create', namespace: 'kube-system', allowed: true },
    { resource: 'secrets', verb: 'list', namespace: 'kube-system', allowed: false },
    { resource: 'secrets', verb: 'get', namespace: 'default', allowed: false },
  ];
  test.each(inTarget.map(titled))(
    'in the target, $what in $attributes.namespace: $attributes.allowed',
    async ({ attributes: { allowed, ...attributes } }) => {
      await using ns = await namespace();
      const api = connect().api();
      await grant(api, 'target', ns.name);

      const got = await mayMachinist(api, attributes);

      await api.close();
      expect(got).toBe(allowed);
    },
  );

  test('and the sample manifests are what the API server takes, down to the last field', async () => {
    await using ns = await namespace();
    const api = connect().api();
    const files = ['control-manager', 'control-machine-controller', 'target-manager', 'sim-driver'] as const;
    for (const file of files) await grant(api, file, ns.name);
    const manifests = ['manifests', 'autoscaler']
      .flatMap((folder) => readManifests(join(import.meta.dirname, '../../deploy', folder)))
      .filter(({ kind }) => kind !== 'Namespace')
      .map((manifest) => ({ ...manifest, metadata: { ...manifest.metadata, namespace: ns.name } }));

    await applyManifests(api, manifests);

    const deployment = await api.request(`/apis/apps/v1/namespaces/${ns.name}/deployments/machine-controller-manager`);
    const service = await api.request(`/api/v1/namespaces/${ns.name}/services/machinist-autoscaler`);
    await api.close();
    expect([deployment.status, service.status]).toEqual([200, 200]);
  });
});
