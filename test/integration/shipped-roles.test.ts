import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, parseManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { AccessReviewer } from '../../pkg/kube/client/access-review.ts';
import { permissionsOf } from '../../pkg/operator/preflight/permissions.ts';
import { WORLDS } from '../../pkg/worlds/served.ts';
import { review } from '../../pkg/operator/preflight/refused.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';
import { allows, asMachinist, grant, moveTo } from './shipped-roles.ts';
import { configFrom } from '../../pkg/operator/config/config.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const AUTOSCALER = join(DEPLOY, 'autoscaler');

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

  test('are all that a process needs, as three lists of the API server say: nothing is asked one by one', async () => {
    await using ns = await namespace();
    const connection = connect();
    const api = connection.api();
    for (const file of ['control', 'control-identity', 'target'] as const) await grant(api, file, ns.name);
    await api.close();
    await using session = new KubeSession(connection, { transport: { endpoint: await asMachinist(connection) } });
    const permissions = permissionsOf(
      {
        leases: new Set(['machine-controller', 'machine-controller-manager']),
        isElected: true,
        hasTarget: true,
        callsDrivers: true,
        isAutoscaled: true,
        hasCells: false,
        controllers: new Set([]),
        of: configFrom('machinist run', new Map(), WORLD_FLAGS).of,
        namespace: ns.name,
        leaseNamespace: ns.name,
      },
      WORLDS,
    );

    const { refused, unanswered } = await review(new AccessReviewer(session.transport), permissions);

    expect({ refused, unanswered }).toEqual({ refused: [], unanswered: [] });
    expect(permissions.length).toBeGreaterThan(50);
    expect(session.requests.map(({ resource }) => resource)).toEqual(Array(3).fill('selfsubjectrulesreviews'));
  });

  test('and the sample manifests are what the API server takes, down to the last field', async () => {
    await using ns = await namespace();
    const api = connect().api();
    const files = ['control-manager', 'control-machine-controller', 'target-manager', 'sim-driver'] as const;
    for (const file of files) await grant(api, file, ns.name);
    const manifests = readManifests(join(DEPLOY, 'base'));

    await applyManifests(
      api,
      [...manifests, ...readManifests(AUTOSCALER)].map((manifest) => moveTo(ns.name, manifest)),
    );

    const path = `/apis/apps/v1/namespaces/${ns.name}/deployments/machine-controller-manager`;
    const { status, body } = await api.request(path, {
      method: 'PATCH',
      contentType: 'application/json-patch+json',
      body: JSON.parse(readFileSync(join(AUTOSCALER, 'machinist-port.patch'), 'utf8')),
    });
    await api.close();
    expect(status).toBe(200);
    const [{ args, volumeMounts }] = (body as { spec: { template: { spec: { containers: [Container] } } } }).spec
      .template.spec.containers;
    const tls = { name: 'autoscaler-tls', mountPath: '/etc/autoscaler', readOnly: true };
    expect(args.at(-1)).toBe(`--autoscaler-tls-client-ca=${tls.mountPath}/ca.crt`);
    expect(volumeMounts).toContainEqual(tls);
  });
});

interface Container {
  readonly args: readonly string[];
  readonly volumeMounts: readonly unknown[];
}

describe('the shipped roles of the cluster-autoscaler', () => {
  const core = { group: '' };
  const lease = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-system' };
  const configMap = { ...core, resource: 'configmaps', namespace: 'kube-system' };
  const questions: readonly (Attributes & { readonly allowed: boolean })[] = [
    // What its informers read; the program does not begin to work before it has them all.
    ...[
      { ...core, resource: 'namespaces' },
      { ...core, resource: 'nodes' },
      { ...core, resource: 'persistentvolumeclaims' },
      { ...core, resource: 'persistentvolumes' },
      { ...core, resource: 'pods' },
      { ...core, resource: 'replicationcontrollers' },
      { ...core, resource: 'services' },
      { group: 'apps', resource: 'daemonsets' },
      { group: 'apps', resource: 'replicasets' },
      { group: 'apps', resource: 'statefulsets' },
      { group: 'batch', resource: 'jobs' },
      { group: 'policy', resource: 'poddisruptionbudgets' },
      { group: 'storage.k8s.io', resource: 'csidrivers' },
      { group: 'storage.k8s.io', resource: 'csinodes' },
      { group: 'storage.k8s.io', resource: 'csistoragecapacities' },
      { group: 'storage.k8s.io', resource: 'storageclasses' },
      { group: 'storage.k8s.io', resource: 'volumeattachments' },
      { group: 'resource.k8s.io', resource: 'deviceclasses' },
      { group: 'resource.k8s.io', resource: 'resourceclaims' },
      { group: 'resource.k8s.io', resource: 'resourceslices' },
    ].flatMap((read) => ['list', 'watch'].map((verb) => ({ ...read, verb, allowed: true }))),
    { ...core, resource: 'nodes', verb: 'update', allowed: true },
    { ...core, resource: 'nodes', verb: 'delete', allowed: false },
    { ...core, resource: 'pods', verb: 'get', allowed: true },
    { ...core, resource: 'pods', verb: 'delete', allowed: false },
    { ...core, resource: 'pods', subresource: 'eviction', verb: 'create', namespace: 'default', allowed: true },
    { ...core, resource: 'events', verb: 'create', namespace: 'default', allowed: true },
    { ...core, resource: 'events', verb: 'patch', namespace: 'default', allowed: true },
    { ...lease, verb: 'create', allowed: true },
    { ...lease, name: 'cluster-autoscaler', verb: 'update', allowed: true },
    { ...lease, name: 'kube-scheduler', verb: 'update', allowed: false },
    { ...configMap, verb: 'create', allowed: true },
    { ...configMap, name: 'cluster-autoscaler-status', verb: 'update', allowed: true },
    { ...configMap, name: 'cluster-autoscaler-priority-expander', verb: 'watch', allowed: true },
    { ...configMap, name: 'cluster-autoscaler-status', verb: 'delete', allowed: true },
    { ...configMap, name: 'kubeadm-config', verb: 'get', allowed: false },
    { ...core, resource: 'secrets', namespace: 'kube-system', verb: 'get', allowed: false },
    { group: 'machine.sapcloud.io', resource: 'machines', namespace: 'default', verb: 'list', allowed: false },
  ];

  test('allow what it does, and nothing of Machinist', async () => {
    await using ns = await namespace();
    const api = connect().api();
    const roles = parseManifests(readFileSync(join(AUTOSCALER, 'rbac.yaml'), 'utf8'));
    await applyManifests(
      api,
      roles.map((manifest) => moveTo(ns.name, manifest)),
    );
    const user = `system:serviceaccount:${ns.name}:cluster-autoscaler`;
    const answer = async (each: Attributes & { readonly allowed: boolean }): Promise<readonly [string, boolean]> => {
      const { allowed: _wanted, ...resourceAttributes } = each;
      return [titled(each).what, await allows(api, { user, resourceAttributes })];
    };

    // The authorizer learns of roles a moment after they were stored.
    await eventually(async () => {
      const got = await Promise.all(questions.map(answer));
      expect(got).toEqual(questions.map((each) => [titled(each).what, each.allowed]));
    });

    await api.close();
  });
});
