import type { Lease } from '../../../apis/wire.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Logger } from '../../../base/log/logger.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Reader, Writer } from '../../../kube/client/client.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import type { DownwardAPI } from '../api/downward-api.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface } from '../api/network-interface.ts';
import type { IronCoreVolume } from '../api/volume.ts';
import type { PoolRuntime } from '../runtime/gated-runtime.ts';
import type { Departures } from './machine/departures.ts';
import type { KeptUses } from './machine/kept-uses.ts';
import type { Rivals } from './machine/rivals.ts';
import type { Sightings } from './machine/sightings.ts';
import type { IronCoreMetrics } from './metrics.ts';
import type { PoolClaims } from './pool-claims.ts';
import type { PoolUIDs } from './pool-uids.ts';
import type { ServedPools } from './served-pools.ts';

/** What the controllers of IronCore work with; each part names what it needs of it. */
export interface IronCoreCollaborators {
  /** Of all namespaces, with IRONCORE_MACHINE_INDEXES. */
  readonly machines: Informer<IronCoreMachine>;
  readonly pools: Informer<IronCoreMachinePool>;
  /** Of POOL_LEASE_NAMESPACE. */
  readonly poolLeases: Informer<Lease>;
  readonly classes: Informer<IronCoreMachineClass>;
  /** With IRONCORE_VOLUME_INDEXES. */
  readonly volumes: Informer<IronCoreVolume>;
  /** With IRONCORE_NETWORK_INTERFACE_INDEXES. */
  readonly networkInterfaces: Informer<IronCoreNetworkInterface>;
  readonly networks: Informer<IronCoreNetwork>;
  /** Metadata only: contents of Secrets are not kept in memory. */
  readonly secrets: Informer<KubeObject>;
  /** Metadata only. */
  readonly prefixes: Informer<KubeObject>;
  readonly reader: Reader;
  readonly writer: Writer;
  readonly recorder: ObjectEvents<IronCoreMachine>;
  readonly poolRecorder: ObjectEvents<IronCoreMachinePool>;
  readonly classRecorder: ObjectEvents<IronCoreMachineClass>;
  readonly metrics: IronCoreMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** By pool. Machines of others are not looked at. */
  readonly runtimes: ReadonlyMap<string, PoolRuntime>;
  /** Pools that nobody else serves: of others nothing is touched. */
  readonly served: Pick<ServedPools, 'has'>;
  readonly poolUIDs: PoolUIDs;
  readonly claims: PoolClaims;
  readonly rivals: Rivals;
  readonly departures: Departures;
  readonly keptUses: KeptUses;
  readonly sightings: Sightings;
  readonly downwardAPI: DownwardAPI;
  /** Value of the label of Machines that are looked after; empty: all are. */
  readonly watchFilter: string;
  /** Something is on its way at the runtime of a pool: it is to be looked at soon. */
  readonly hurry: (pool: string) => void;
}
