import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { classOf, type SecretTexts } from '../drivers/requests.ts';
import type { Bed } from './bed.ts';
import { PROJECTS, USER } from './seed.ts';

/** Tags as Gardener writes them. */
export const TAGS = { 'kubernetes.io-cluster-shoot--a--b': '1', 'kubernetes.io-role-node': '1' };

/** A class as Gardener's provider takes it, with changes. */
export function openStackClass({ seeds, settings }: Bed, change: Readonly<Record<string, unknown>> = {}): MachineClass {
  const spec = {
    imageID: seeds.imageID,
    region: settings.region,
    availabilityZone: 'nova',
    flavorName: 'tiny',
    keyName: 'key',
    securityGroups: ['group-a'],
    tags: TAGS,
    networkID: seeds.networkID,
    podNetworkCidr: '10.96.0.0/11',
    ...change,
  };
  return classOf('openstack', {
    apiVersion: 'openstack.machine.gardener.cloud/v1alpha1',
    kind: 'MachineProviderConfig',
    spec: Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)),
  });
}

/** The credentials of the driver's user. */
export function secretOf({ seeds, settings }: Bed, change: SecretTexts = {}): SecretTexts {
  return {
    authURL: settings.authURL,
    domainName: 'Default',
    tenantName: PROJECTS.machines,
    username: USER,
    password: seeds.userPassword,
    ...change,
  };
}
