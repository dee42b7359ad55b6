import type { IronCoreMachineSpec } from '../../../../pkg/worlds/ironcore/api/machine.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { NAMESPACE, type MachinesWorld } from '../../world/machines-world.ts';
import { integerIn, oneOf } from '../../world/seeded-random.ts';
import { made, pathTo } from './kinds.ts';
import { POOLS } from './runtimes.ts';

/** Machines are of these. */
export const CLASSES = ['small', 'large'] as const;
/** Volumes and NetworkInterfaces that any Machine may name, one at a time. */
export const SHARED = { volumes: ['data-1', 'data-2'], networkInterfaces: ['nic-1', 'nic-2'] } as const;
/** Taint that some Machines tolerate. */
export const TAINT = 'maintenance';
const ZONE_LABEL = 'topology.ironcore.dev/zone';
const NETWORK = 'network';
const IGNITION = 'ignition';
const LEASES_OF_POOLS = 'ironcore-machinepool-lease';

/** Zone of a pool. */
const zoneOf = (pool: string): string => `zone-${pool.at(-1)}`;

/** Puts what Machines are made of into a world. */
export function furnish(world: MachinesWorld): void {
  world.act('POST', '/api/v1/namespaces', { metadata: { name: LEASES_OF_POOLS } });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: IGNITION, namespace: NAMESPACE },
    stringData: { 'ignition.yaml': 'data' },
  };
  world.act('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, secret);
  for (const name of CLASSES)
    world.act(
      'POST',
      pathTo('machineclasses'),
      made('machineclasses', 'MachineClass', name, { capabilities: capabilitiesOf(name) }),
    );
  for (const name of POOLS) {
    const { metadata, ...pool } = made('machinepools', 'MachinePool', name, {}) as { readonly metadata: object };
    world.act('POST', pathTo('machinepools'), {
      ...pool,
      metadata: { ...metadata, labels: { [ZONE_LABEL]: zoneOf(name) } },
    });
  }
  world.act('POST', pathTo('networks'), made('networks', 'Network', NETWORK, { spec: { providerID: 'net-1' } }));
  for (const name of SHARED.volumes)
    world.act('POST', pathTo('volumes'), made('volumes', 'Volume', name, { spec: { resources: { storage: '1Gi' } } }));
  for (const [i, name] of SHARED.networkInterfaces.entries()) {
    const spec = { networkRef: { name: NETWORK }, ips: [{ value: `10.0.1.${i + 1}` }] };
    world.act('POST', pathTo('networkinterfaces'), made('networkinterfaces', 'NetworkInterface', name, { spec }));
  }
}

function capabilitiesOf(name: string): object {
  return name === 'small' ? { cpu: '1', memory: '1Gi' } : { cpu: '4', memory: '8Gi' };
}

/** A Machine to create, of one of the kinds that there are. `number`: no other Machine has it. */
export function machineOf(random: Random, number: number): { readonly metadata: { readonly name: string } } {
  const has = (share: number): boolean => random() < share;
  const spec: IronCoreMachineSpec = {
    machineClassRef: { name: has(0.8) ? 'small' : 'large' },
    ...(has(0.2) && { machinePoolSelector: { [ZONE_LABEL]: zoneOf(oneOf(random, POOLS)) } }),
    ...(has(0.2) && { power: 'Off' as const }),
    ...(has(0.3) && { tolerations: [{ key: TAINT, operator: 'Exists' }] }),
    ...(has(0.3) && { ignitionRef: { name: IGNITION } }),
    volumes: [
      { name: 'root', localDisk: { image: 'image', sizeLimit: '1Gi' } },
      ...(has(0.3) ? [sharedVolume(random)] : []),
      ...(has(0.7)
        ? [{ name: 'scratch', ephemeral: { volumeTemplate: { spec: { resources: { storage: '1Gi' } } } } }]
        : []),
    ],
    networkInterfaces: [...(has(0.3) ? [sharedNIC(random)] : []), ...(has(0.4) ? [ownNIC(number)] : [])],
  };
  // Where users choose themselves.
  const byHand = has(0.1);
  const { metadata, ...machine } = made('machines', 'Machine', `m-${number}`, {
    spec: { ...spec, ...(byHand && { machinePoolRef: { name: oneOf(random, POOLS) } }) },
  }) as { readonly metadata: { readonly name: string } };
  return { ...machine, metadata: { ...metadata, ...(byHand && { annotations: { 'by-hand': '' } }) } };
}

/** An entry for a Volume that others may want, too. */
export function sharedVolume(random: Random): { readonly name: string; readonly volumeRef: { readonly name: string } } {
  const name = oneOf(random, SHARED.volumes);
  return { name, volumeRef: { name } };
}

/** The same for a NetworkInterface. */
export function sharedNIC(random: Random): {
  readonly name: string;
  readonly networkInterfaceRef: { readonly name: string };
} {
  const name = oneOf(random, SHARED.networkInterfaces);
  return { name, networkInterfaceRef: { name } };
}

function ownNIC(number: number): {
  readonly name: string;
  readonly ephemeral: { readonly networkInterfaceTemplate: object };
} {
  const spec = { networkRef: { name: NETWORK }, ips: [{ value: `10.${integerOf(number)}` }] };
  return { name: 'primary', ephemeral: { networkInterfaceTemplate: { spec } } };
}

/** An address that no other Machine has. */
function integerOf(number: number): string {
  return `2.${Math.floor(number / 250)}.${(number % 250) + 1}`;
}

/** A size that a Volume may be given: never less than before. */
export function drawSize(random: Random): string {
  return `${integerIn(random, 1, 9)}Gi`;
}
