import { parseFieldPath, type DownwardAPI, type DownwardFields, type MetadataField } from '../api/downward-api.ts';
import type { FlagSection } from '../../../operator/config/flag-section.ts';
import { list, text } from '../../../operator/config/flag.ts';
import { addressesFrom, refuseTwice } from '../../../operator/config/named-addresses.ts';
import { FlagError } from '../../../operator/config/flag-error.ts';
import type { ValueReader } from '../../../operator/config/value-reader.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './leases.ts';

export interface IronCoreSettings {
  readonly pools: readonly PoolAddress[];
  /** Only Machines in these pools with this value of the label are looked after; empty: all. */
  readonly watchFilter: string;
  readonly downwardAPI: DownwardAPI;
}

export interface PoolAddress {
  readonly pool: string;
  readonly address: string;
  /** Of the MachinePool; undefined: it is created without. */
  readonly providerID?: string | undefined;
}

const SERVING = ['ironcore.pools', 'ironcore.machines'];

export const IRONCORE_FLAGS: FlagSection<IronCoreSettings> = {
  heading: 'IronCore',
  flags: {
    'ironcore-pool': list(
      'IronCore MachinePool to serve, as <name>=<address>; may be repeated. Adds controllers ironcore.pools and ironcore.machines. The address is that of a runtime that serves IRI: unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE with mutual TLS; on loopback also dns:///127.0.0.1:port?insecure=true in plain text.',
    ),
    'ironcore-pool-provider-id': list(
      'spec.providerID of a MachinePool of --ironcore-pool, as <name>=<ID>; may be repeated. Set when the MachinePool is created: it cannot be changed afterwards.',
    ),
    'ironcore-watch-filter': text(
      'For --ironcore-pool: reconcile only Machines whose label common.ironcore.dev/watch-filter has this value. If empty, all in the pool are reconciled.',
    ),
    'machine-downward-api-label': list(
      "For --ironcore-pool: label downward-api.machinepoollet.ironcore.dev/<name> of machines at the runtime, as <name>=<field>, where the field is metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'] or metadata.annotations['KEY'] of the Machine; may be repeated. Set when a machine is created.",
    ),
    'machine-downward-api-annotation': list(
      'For --ironcore-pool: the same for annotations of machines at the runtime, which follow the Machine.',
    ),
    'volume-downward-api-label': list(
      'For --ironcore-pool: the same for labels in attribute rawVolumeLabels of volumes at the runtime, read from the Volume. Set when the volume is attached.',
    ),
    'nic-downward-api-label': list(
      'For --ironcore-pool: the same for attribute rawNICLabels of network interfaces, read from the NetworkInterface.',
    ),
    'network-downward-api-label': list(
      'For --ironcore-pool: the same for attribute rawNetworkLabels of network interfaces, read from the Network.',
    ),
  },
  leases: [
    { lease: IRONCORE_SCHEDULER_LEASE, needed: ['ironcore.scheduler'], optional: ['ironcore.lifecycle'] },
    { lease: IRONCORE_POOLS_LEASE, needed: SERVING, optional: [] },
  ],
  allOf: { ironcore: ['ironcore.scheduler', 'ironcore.lifecycle'] },
  notInCells(_settings, controllers) {
    const named = ['ironcore.scheduler', 'ironcore.lifecycle', ...SERVING].find((name) => controllers.has(name));
    const flag = named !== undefined && SERVING.includes(named) ? '--ironcore-pool' : `--controllers: ${named}`;
    return named === undefined
      ? undefined
      : `${flag} is not supported with --cells, because pools and classes of IronCore belong to no namespace; run it in a process of its own, without --cells`;
  },
  settings: (read) => ({
    pools: poolsFrom(read.list('ironcore-pool'), read.list('ironcore-pool-provider-id')),
    watchFilter: read.text('ironcore-watch-filter'),
    downwardAPI: {
      machineLabels: fieldsIn(read, 'machine-downward-api-label'),
      machineAnnotations: fieldsIn(read, 'machine-downward-api-annotation'),
      volumeLabels: fieldsIn(read, 'volume-downward-api-label'),
      networkInterfaceLabels: fieldsIn(read, 'nic-downward-api-label'),
      networkLabels: fieldsIn(read, 'network-downward-api-label'),
    },
  }),
  /** Pools are served wherever there are any. */
  alsoRuns({ pools }, named) {
    if (pools.length > 0) return SERVING;
    const idle = SERVING.find((name) => named.includes(name));
    if (idle === undefined) return [];
    throw new FlagError(`--controllers: "${idle}" requires --ironcore-pool, because there is no pool to serve`);
  },
};

function poolsFrom(items: readonly string[], providerIDs: readonly string[]): PoolAddress[] {
  const pools = addressesFrom('ironcore-pool', 'name', items);
  refuseTwice('ironcore-pool', 'pool', pools);
  const ids = new Map<string, string>();
  for (const item of providerIDs) {
    const [, name = '', id = ''] = /^([^=]+)=(.+)$/.exec(item) ?? [];
    if (id === '' || ids.has(name) || pools.every((pool) => pool.name !== name)) {
      throw new FlagError(
        `--ironcore-pool-provider-id: ${JSON.stringify(item)} is not valid: expected <name>=<ID>, once for each pool, with the name of a pool of --ironcore-pool`,
      );
    }
    ids.set(name, id);
  }
  return pools.map(({ name, address }) => ({ pool: name, address, providerID: ids.get(name) }));
}

/** That of labels is how machines of a pool are told from those of others. */
const RESERVED_FIELD = 'machinepool-uid';

/** Fields of objects that runtimes are told of, by name. Throws FlagError. */
function fieldsIn(read: ValueReader, flag: string): DownwardFields {
  const fields = new Map<string, MetadataField>();
  for (const item of read.list(flag)) {
    const [, name = '', path = ''] = /^([A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)=(.+)$/.exec(item) ?? [];
    const field = parseFieldPath(path);
    if (field === undefined) {
      throw new FlagError(
        `--${flag}: ${JSON.stringify(item)} is not valid: expected <name>=<field>, where the field is metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'] or metadata.annotations['KEY']`,
      );
    }
    if (name === RESERVED_FIELD) throw new FlagError(`--${flag}: name "${name}" is reserved; choose another one`);
    if (fields.has(name)) throw new FlagError(`--${flag}: name "${name}" is listed twice`);
    fields.set(name, field);
  }
  return fields;
}
