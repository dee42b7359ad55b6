import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../../hack/control-plane/api.ts';
import { bootstrapDataIn } from '../../pkg/worlds/cluster-api/api/bootstrap-secret.ts';
import { pluralOf } from '../../pkg/worlds/cluster-api/api/contract.ts';
import { CLUSTER_API_VERSIONED, INFRASTRUCTURE_GROUP } from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { controllerOf, isBeingDeleted, type KubeObject } from '../../pkg/apis/meta.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver, DriverCall, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { NAMESPACE } from './manifests.ts';
import { DEMO_CLUSTER, DEMO_MACHINE, DEMO_TEMPLATE, PROVIDER_VERSION } from './provider-objects.ts';

const FINALIZER = `demomachine.${INFRASTRUCTURE_GROUP}`;
/** As the kubelets of the local driver call themselves, by which Cluster API finds their Nodes. */
const NODE_FORM = 'kubemark://';
const PAUSE_MS = 300;
const CALL_MS = 30_000;
const COLLECTION = `/apis/${INFRASTRUCTURE_GROUP}/${PROVIDER_VERSION}/namespaces/${NAMESPACE}/${pluralOf(DEMO_MACHINE.kind)}`;
const MACHINES = `/apis/${CLUSTER_API_VERSIONED}/namespaces/${NAMESPACE}/machines`;

interface DemoMachine extends KubeObject {
  readonly spec?: { readonly providerID?: string };
  readonly status?: { readonly initialization?: { readonly provisioned?: boolean } };
}

export interface ProviderDeps {
  readonly api: Api;
  /** Of the driver whose machines the infrastructure is. */
  readonly address: string;
  readonly print: (line: string) => void;
}

export interface PlayedProvider {
  /** Resolves when so many Machines of Cluster API are Running. Rejects with the signal's reason. */
  readonly untilRunning: (machines: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when nothing is asked any more. */
  readonly end: () => Promise<void>;
}

/** Plays an infrastructure provider of Cluster API, whose machines are those of a driver, and tells of each phase of Cluster API's Machines. */
export function playProvider({ api, address, print }: ProviderDeps): PlayedProvider {
  const stop = new AbortController();
  const driver = new GrpcDriver({ address: parseDriverAddress(address), clock: new SystemClock(), log: silentLogger });
  const phases = new Map<string, string>();
  const round = async (): Promise<void> => {
    const { items } = await api.send<{ items: DemoMachine[] }>('GET', COLLECTION);
    for (const object of items) {
      // One that cannot go on keeps nobody else from it.
      await reconcile(api, driver, object, stop.signal).catch((err: unknown) => tellWhy(api, object, err));
    }
    await tellPhases(api, phases, print);
  };
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      // Whatever went wrong, a driver that is being started or an API server that is away, is tried again.
      await round().catch(() => undefined);
      await sleep(PAUSE_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const ended = run();
  return {
    async untilRunning(machines, signal) {
      while ([...phases.values()].filter((phase) => phase === 'Running').length < machines) {
        signal.throwIfAborted();
        await sleep(PAUSE_MS);
      }
    },
    async end() {
      stop.abort();
      await ended;
      await driver.close();
    },
  };
}

/** One step forward with an object, in the order that the contract of Cluster API has. */
async function reconcile(api: Api, driver: Driver, object: DemoMachine, signal: AbortSignal): Promise<void> {
  const { name, uid, finalizers = [] } = object.metadata;
  const patch = (change: object): Promise<unknown> => api.send('PATCH', `${COLLECTION}/${name}`, change);
  const request = requestOf(object);
  const call: DriverCall = { signal, timeoutMs: CALL_MS, fencingToken: 0n, cluster: DEMO_CLUSTER };
  if (isBeingDeleted(object)) {
    if (!finalizers.includes(FINALIZER)) return;
    await driver.deleteMachine(request, call).catch((err: unknown) => {
      if (!DriverError.hasCode(err, 'NotFound')) throw err;
    });
    await patch({ metadata: { uid, finalizers: finalizers.filter((one) => one !== FINALIZER) } });
    return;
  }
  const owner = controllerOf(object);
  if (owner?.kind !== 'Machine') return;
  if (!finalizers.includes(FINALIZER)) {
    await patch({ metadata: { uid, finalizers: [...finalizers, FINALIZER] } });
    return;
  }
  if (object.spec?.providerID === undefined) {
    const { spec } = await api.send<ClusterAPIMachine>('GET', `${MACHINES}/${owner.name}`);
    const secretData = { userData: await userDataIn(api, spec?.bootstrap?.dataSecretName) };
    await driver.createMachine({ ...request, secretData }, call);
    await patch({ metadata: { uid }, spec: { providerID: `${NODE_FORM}${name}` } });
    return;
  }
  if (object.status?.initialization?.provisioned === true) return;
  await api.send('PATCH', `${COLLECTION}/${name}/status`, {
    status: {
      initialization: { provisioned: true },
      addresses: [{ type: 'Hostname', address: name }],
      conditions: [{ type: 'Ready', status: 'True', reason: 'Provisioned', message: '' }],
    },
  });
}

/** What a machine starts with. Rejects with what a provider is to say of a Machine whose Secret is not as it should be. */
export async function userDataIn(api: Pick<Api, 'request'>, secret: string | undefined): Promise<Uint8Array> {
  if (secret === undefined) throw new Error('waiting for bootstrap data: the Machine does not reference a Secret yet');
  const { status, body } = await api.request(`/api/v1/namespaces/${NAMESPACE}/secrets/${secret}`);
  if (status === 404) throw new Error(`Secret ${secret} does not exist in namespace ${NAMESPACE}; create it`);
  if (status !== 200) throw new Error(`Secret ${secret} cannot be read: the API server answered ${status}`);
  const data = bootstrapDataIn(body as Secret); // by the API server's word
  if (data === undefined) throw new Error(`Secret ${secret} has no key "value"; put the bootstrap data there`);
  return data.value;
}

/** The Machine of an object says so too: as its condition InfrastructureReady. */
async function tellWhy(api: Api, { metadata, status }: DemoMachine, err: unknown): Promise<void> {
  if (status?.initialization?.provisioned === true) return;
  const message = err instanceof Error ? err.message : String(err);
  const conditions = [{ type: 'Ready', status: 'False', reason: 'NotReady', message }];
  await api.send('PATCH', `${COLLECTION}/${metadata.name}/status`, { status: { conditions } });
}

async function tellPhases(api: Api, told: Map<string, string>, say: (line: string) => void): Promise<void> {
  const { items } = await api.send<{ items: ClusterAPIMachine[] }>('GET', MACHINES);
  const phases = new Map(items.map(({ metadata, status }) => [metadata.name, status?.phase ?? '']));
  for (const name of told.keys()) {
    if (phases.has(name)) continue;
    told.delete(name);
    say(`  cluster-api  ${name}  Gone`);
  }
  for (const [name, phase] of phases) {
    if (phase === '' || told.get(name) === phase) continue;
    told.set(name, phase);
    say(`  cluster-api  ${name}  ${phase}`);
  }
}

function requestOf({ metadata }: DemoMachine): MachineRequest {
  const { name, uid, resourceVersion, creationTimestamp } = metadata;
  const known = { namespace: NAMESPACE, resourceVersion, creationTimestamp };
  const machineClass: MachineClass = {
    metadata: { name: DEMO_TEMPLATE.name, uid: DEMO_TEMPLATE.name, ...known },
    provider: 'local',
    providerSpec: {},
  };
  return { machine: { metadata: { name, uid, ...known }, spec: {} }, machineClass, secretData: {} };
}
