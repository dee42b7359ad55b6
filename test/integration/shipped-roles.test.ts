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

/** As in the title of a test: `patch machines/status machine-controller`. */
function titled<T extends Attributes>(attributes: T): T & { readonly what: string } {
  const { verb, resource, subresource, name } = attributes;
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  return { ...attributes, what: [verb, path, name].filter((part) => part !== undefined).join(' ') };
}

describe('the shipped roles', () => {
  const machine = { group: 'machine.sapcloud.io', resource: 'machines' };
  const lease = { group: 'coordination.k8s.io', resource: 'leases' };

  const inControl: readonly (Attributes & { readonly control: boolean })[] = [
    { ...machine, verb: 'create', control: true },
    { ...machine, verb: 'patch', subresource: 'status', control: true },
    { ...machine, verb: 'update', control: false },
    { ...machine, verb: 'deletecollection', control: false },
    { group: 'machine.sapcloud.io', resource: 'machineclasses', verb: 'delete', control: false },
    { group: 'machine.sapcloud.io', resource: 'machinedeployments', verb: 'create', control: false },
    { resource: 'secrets', verb: 'patch', control: true },
    { resource: 'secrets', verb: 'create', control: false },
    { resource: 'secrets', verb: 'delete', control: false },
    { resource: 'configmaps', verb: 'get', control: false },
    { ...lease, name: 'machine-controller', verb: 'update', control: true },
    { ...lease, name: 'machine-controller-manager', verb: 'watch', control: true },
    { ...lease, name: 'somebody-else', verb: 'update', control: false },
    { ...lease, name: 'machine-controller', verb: 'delete', control: false },
  ];
  test.each(inControl.map(titled))(
    'allow $what in our namespace only: $control',
    async ({ control, what: _, ...attributes }) => {
      await using ns = await namespace();
      const api = connect().api();
      await grant(api, 'control', ns.name);

      const here = await mayMachinist(api, { ...attributes, namespace: ns.name });
      const elsewhere = await mayMachinist(api, { ...attributes, namespace: 'default' });

      await api.close();
      expect({ here, elsewhere }).toEqual({ here: control, elsewhere: false });
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
    'in the target, $what in $namespace: $allowed',
    async ({ allowed, what: _, ...attributes }) => {
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
    const manifests = readManifests(join(import.meta.dirname, '../../deploy/manifests'))
      .filter(({ kind }) => kind !== 'Namespace')
      .map((manifest) => ({ ...manifest, metadata: { ...manifest.metadata, namespace: ns.name } }));

    await applyManifests(api, manifests);

    const deployment = await api.request(`/apis/apps/v1/namespaces/${ns.name}/deployments/machinist`);
    await api.close();
    expect(deployment.status).toBe(200);
  });
});
