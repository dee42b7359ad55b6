import type { Clock } from '../../base/clock/clock.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../../driver/driver.ts';
import { DriverError } from '../../driver/error.ts';
import type { Logger } from '../../base/log/logger.ts';
import { machineOf, notFound, onlyOne, requireMachineName, type MachineIdentity } from '../machine-identity.ts';
import { invalid, userDataOf } from '../spec-fields.ts';
import { reportingFailures } from '../reported-failure.ts';
import { NoAnswerError } from './answer.ts';
import { type Cloud, Clouds } from './cloud.ts';
import { supportedKeysOf } from './clouds-yaml.ts';
import { buildFailure, Creation } from './creation.ts';
import { deleteServers } from './deletion.ts';
import { FailedBuilds } from './failed-builds.ts';
import { ensureFloatingIP, hasFloatingIP } from './floating-ip.ts';
import { ownerText } from './intent.ts';
import {
  isListedFor,
  isMarkedFor,
  isServerOf,
  namespaceOf,
  parseProviderID,
  openStackProviderID,
  serverTagsOf,
} from './ownership.ts';
import { Ports } from './ports.ts';
import {
  type Findable,
  findableIn,
  floatingIPIn,
  marksIn,
  type OpenStackSpec,
  parseProviderSpec,
} from './provider-spec.ts';
import { addressesOf, capacityOf, type Server, serverStateOf } from './server.ts';
import { unavailable } from './service-client.ts';
import type { ObserveRequest } from './session.ts';
import type { OpenStackSettings } from './settings.ts';
import { Tenure } from './tenure.ts';
import { OneAtATime } from './turns.ts';
import { Users } from './users.ts';
import { cinderVolumeIDOf } from './volume-ids.ts';

export interface OpenStackDriverDeps {
  readonly settings: OpenStackSettings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Nobody is told without it. */
  readonly observe?: ObserveRequest;
  /** Without it, what the keys of Secrets open. */
  readonly clouds?: Pick<Clouds, 'open' | 'close'>;
}

/** What Nova takes, encoded. */
const LONGEST_USER_DATA = 65_535;

const CAPABILITIES: Capabilities = {
  contractVersion: 'v1',
  name: 'openstack',
  idempotentCreate: true,
  listScope: 'class',
  methods: new Set(['InitializeMachine', 'ListMachines', 'GetVolumeIDs'] as const),
};

/** Which servers are looked for; `marks` are the two tags of the class. */
interface Sought {
  readonly cloud: Cloud;
  readonly marks: readonly string[];
  readonly machine: MachineIdentity;
}

/**
 * A driver for OpenStack, in the place of Gardener's: it takes the same classes and Secrets, and finds the servers that were made by it.
 * It keeps little that the cloud does not keep: a token, for half a minute what names stand for, and what was not answered or has failed last.
 */
export class OpenStackDriver implements Driver {
  readonly #deps: OpenStackDriverDeps;
  readonly #clouds: Pick<Clouds, 'open' | 'close'>;
  readonly #turns = new OneAtATime();
  readonly #tenure: Tenure;
  readonly #failedBuilds: FailedBuilds;

  constructor(deps: OpenStackDriverDeps) {
    this.#deps = deps;
    this.#clouds = deps.clouds ?? new Clouds(deps.clock, deps.settings, deps.observe);
    this.#tenure = new Tenure(deps.clock);
    this.#failedBuilds = new FailedBuilds(deps.clock);
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(CAPABILITIES);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    this.#tenure.saw(request.machine, call);
    return await this.#run(request, async () => {
      const spec = parseProviderSpec(request.machineClass.providerSpec);
      const userData = encodedUserData(request);
      const cloud = this.#clouds.open(request.secretData, spec.region);
      const className = request.machineClass.metadata.name;
      return await this.#alone(machine, call, async () => {
        const failedBuilds = this.#failedBuilds;
        const creation = new Creation({ ...this.#deps, cloud, machine, spec, className, userData, failedBuilds });
        const server = await creation.run(call);
        return { ...(await this.#finish(cloud, spec, machine, server, call)), lastKnownState: undefined };
      });
    });
  }

  /** Waits for a server that takes long to be built, and gives it its floating IP. */
  async initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = machineOf(request, call);
    this.#tenure.saw(request.machine, call);
    return await this.#run(request, async () => {
      const spec = parseProviderSpec(request.machineClass.providerSpec);
      const { cloud, marks } = this.#open(request, machine);
      return await this.#alone(machine, call, async () => {
        const found = await this.#find({ cloud, marks, machine }, call.signal);
        if (found === undefined) throw notFound(machine);
        const isBuilt = (server: Server): boolean => this.#stateOf(server) !== 'building';
        const server = isBuilt(found)
          ? found
          : await cloud.pollOf(call.cluster).until(found.id, isBuilt, call.timeoutMs - 3_000, call.signal);
        if (server === undefined || this.#stateOf(server) === 'gone') throw notFound(machine);
        if (this.#stateOf(server) === 'failed') throw await buildFailure(cloud, spec, server, call.signal);
        if (!isBuilt(server)) throw unfinished(cloud, machine, server, 'is being built');
        return await this.#finish(cloud, spec, machine, server, call);
      });
    });
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = machineOf(request, call);
    return await this.#run(request, async () => {
      const { cloud, marks } = this.#open(request, machine);
      const server = await this.#find({ cloud, marks, machine }, call.signal);
      // A build that failed is no VM: a new one is made in its place.
      if (server === undefined || this.#stateOf(server) === 'failed') throw notFound(machine);
      if (this.#stateOf(server) === 'building') throw unfinished(cloud, machine, server, 'is being built');
      if (await this.#isClosedToPods(cloud, request, machine, server, call.signal))
        throw unfinished(cloud, machine, server, 'does not let the packets of pods pass yet');
      const vm = virtualMachineOf(cloud, server);
      const wanted = floatingIPIn(request.machineClass.providerSpec);
      // Nova shows floating IPs late.
      if (wanted === undefined || vm.addresses.some(({ type }) => type === 'ExternalIP')) return vm;
      // Whoever has made the server has not come to its end, and nobody else would give it its address.
      if (!(await hasFloatingIP(cloud, wanted, server.id, ownerText(machine), call.signal)))
        throw unfinished(cloud, machine, server, 'has no floating IP yet');
      return vm;
    });
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    const machine = machineOf(request, call);
    this.#tenure.saw(request.machine, call);
    return await this.#run(request, async () => {
      // A class that has become invalid must not keep servers alive.
      const { cloud, ...known } = this.#open(request, machine);
      return await this.#alone(machine, call, async () => {
        const servers = await this.#all({ cloud, marks: known.marks, machine }, call.signal);
        const othersMs = this.#tenure.leftMs(request.machine, call, this.#deps.settings.answerMs);
        await deleteServers({ ...this.#deps, ...known, cloud, machine, servers, othersMs }, call);
        return { lastKnownState: undefined };
      });
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { name, namespace = '' } = request.machineClass.metadata;
    return await this.#run(request, async () => {
      // A class that has become invalid must not hide servers.
      const { region = '', marks } = findableIn(request.machineClass.providerSpec);
      if (region === '') throw withoutRegion();
      const cloud = this.#clouds.open(request.secretData, region);
      // All of them: a tag of Nova that was taken away must not hide a server.
      const servers = await cloud.compute.servers(undefined, call.signal);
      return servers
        .filter((server) => isListedFor(server, marks, name) && serverStateOf(server, 0, Infinity) !== 'gone')
        .map((server) => ({
          ...serverTagsOf(server, region),
          machineNamespace: namespaceOf(server),
          state: server.status,
        }))
        .filter(
          (vm) =>
            (vm.namespace === '' || vm.namespace === namespace) && (vm.cluster === '' || vm.cluster === call.cluster),
        )
        .filter((vm) => vm.className === '' || vm.className === name)
        .map(({ providerID, machineName, machineUID, machineNamespace, state }) => ({
          providerID,
          machineName,
          machineUID,
          machineNamespace,
          state,
        }));
    });
  }

  async getVolumeIDs(pvSpecs: readonly unknown[]): Promise<readonly string[]> {
    return await Promise.resolve(pvSpecs.map(cinderVolumeIDOf).filter((id) => id !== undefined));
  }

  async close(): Promise<void> {
    await this.#clouds.close();
  }

  /** What a service says may repeat what it was sent: nothing of a Secret leaves the driver. */
  async #run<T>({ secretData }: Pick<MachineRequest, 'secretData'>, work: () => Promise<T>): Promise<T> {
    return await reportingFailures(
      hiddenOf(secretData),
      (err) => (err instanceof NoAnswerError ? unavailable('asking the cloud', err) : err),
      work,
    );
  }

  /** One call that changes something for each machine at a time: a second one finds what the first has made. */
  async #alone<T>({ cluster, namespace, name }: MachineIdentity, call: DriverCall, work: () => Promise<T>): Promise<T> {
    return await this.#turns.take(JSON.stringify([cluster, namespace, name]), call.signal, work);
  }

  /** The cloud of a class whose spec may be wrong, or may have become that of another region: the server is where it was made. */
  #open(
    { machineClass, secretData }: Pick<MachineRequest, 'machineClass' | 'secretData'>,
    { providerID }: MachineIdentity,
  ): Omit<Findable, 'region'> & { readonly cloud: Cloud } {
    const found = findableIn(machineClass.providerSpec);
    const { region: current = '', ...known } = found;
    const recorded = parseProviderID(providerID)?.region ?? '';
    const region = recorded === '' ? current : recorded;
    if (region === '') throw withoutRegion();
    return { cloud: this.#clouds.open(secretData, region), ...known };
  }

  async #find(sought: Sought, signal: AbortSignal): Promise<Server | undefined> {
    const { cloud, machine } = sought;
    const known = await this.#byID(sought, signal);
    if (known !== undefined) return known;
    const servers = await this.#all(sought, signal);
    const live = servers.filter((server) => this.#stateOf(server) !== 'failed');
    const [one] = live.length > 0 ? live : servers;
    if (live.length > 1)
      onlyOne(
        live.map((server) => serverTagsOf(server, cloud.region)),
        machine,
      );
    return one;
  }

  async #all(sought: Sought, signal: AbortSignal): Promise<readonly Server[]> {
    const { cloud, machine } = sought;
    const known = await this.#byID(sought, signal);
    // Without a UID only the ID counts: the name may be another machine's by now.
    const isStub = machine.uid === undefined && machine.providerID !== undefined;
    const named = isStub ? [] : await cloud.compute.serversNamed(machine.name, signal);
    const servers = new Map([...(known === undefined ? [] : [known]), ...named].map((server) => [server.id, server]));
    return [...servers.values()].filter((server) => this.#isOf(server, sought));
  }

  async #byID(sought: Sought, signal: AbortSignal): Promise<Server | undefined> {
    const { cloud, machine } = sought;
    const id = parseProviderID(machine.providerID)?.id;
    const server = id === undefined ? undefined : await cloud.compute.server(id, signal);
    return server !== undefined && this.#isOf(server, sought) ? server : undefined;
  }

  #isOf(server: Server, { cloud, marks, machine }: Sought): boolean {
    if (this.#stateOf(server) === 'gone' || !isServerOf(server, machine, cloud.region)) return false;
    if (isMarkedFor(server, marks, machine)) return true;
    const fields = { machine: `${machine.namespace}/${machine.name}`, server: server.id, marks };
    this.#deps.log.warn(fields, 'skipped a server that has lost the tags of its class');
    return false;
  }

  async #finish(
    cloud: Cloud,
    spec: OpenStackSpec,
    machine: MachineIdentity,
    server: Server,
    { signal }: DriverCall,
  ): Promise<VirtualMachine> {
    const vm = virtualMachineOf(cloud, server);
    if (this.#stateOf(server) === 'building') return vm;
    const about = { ...this.#deps, cloud, machine };
    const ports = new Ports(about);
    if (isOfEarlierProvider(server))
      for (const { id } of await ports.closedToPods(spec, server.id, signal))
        await cloud.network.allowAddresses(id, spec.podNetworkCIDRs, signal);
    if (spec.floatingIP === undefined) return vm;
    const port = await ports.first(spec, server.id, signal);
    if (port === undefined)
      throw new DriverError(
        'FailedPrecondition',
        `server ${server.id} has no port in its first network for its floating IP`,
      );
    const users = new Users({ ...about, marks: marksIn(spec.tags), own: new Set([server.id]) });
    const deps = { cloud, owner: ownerText(machine), ports: new Set([port.id]), users };
    const address = await ensureFloatingIP(deps, spec.floatingIP, port.id, signal);
    // Nova shows it later.
    if (vm.addresses.some((one) => one.address === address)) return vm;
    return { ...vm, addresses: [...vm.addresses, { type: 'ExternalIP', address }] };
  }

  /** Whether an earlier provider was stopped before it had finished the server; not known of a class that has become invalid. */
  async #isClosedToPods(
    cloud: Cloud,
    { machineClass }: MachineRequest,
    machine: MachineIdentity,
    server: Server,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!isOfEarlierProvider(server)) return false;
    try {
      const spec = parseProviderSpec(machineClass.providerSpec);
      return (await new Ports({ ...this.#deps, cloud, machine }).closedToPods(spec, server.id, signal)).length > 0;
    } catch (err) {
      if (DriverError.hasCode(err, 'InvalidArgument')) return false;
      throw err;
    }
  }

  #stateOf(server: Server): ReturnType<typeof serverStateOf> {
    if (this.#failedBuilds.has(server)) return 'failed';
    return serverStateOf(server, this.#deps.clock.now(), this.#deps.settings.buildMs);
  }
}

function isOfEarlierProvider(server: Server): boolean {
  return namespaceOf(server) === undefined;
}

function withoutRegion(): DriverError {
  return invalid('providerSpec.spec.region: must be a non-empty string');
}

function virtualMachineOf({ region }: Cloud, server: Server): VirtualMachine {
  const providerID = openStackProviderID(region, server.id);
  return { providerID, nodeName: server.name, addresses: addressesOf(server), capacity: capacityOf(server) };
}

function unfinished({ region }: Cloud, machine: MachineIdentity, { id, name }: Server, why: string): DriverError {
  return new DriverError('Uninitialized', `server ${id} of machine ${machine.namespace}/${machine.name} ${why}`, {
    result: { providerID: openStackProviderID(region, id), nodeName: name },
  });
}

/** What must not be told: also what stands in the files of a Secret. */
function hiddenOf(secretData: MachineRequest['secretData']): MachineRequest['secretData'] {
  try {
    return { ...secretData, ...supportedKeysOf(secretData) };
  } catch {
    return secretData; // what cannot be read was not sent anywhere
  }
}

function encodedUserData({ secretData }: MachineRequest): string {
  const encoded = Buffer.from(userDataOf(secretData)).toString('base64');
  if (encoded.length <= LONGEST_USER_DATA) return encoded;
  throw invalid(
    `secret: userData has ${encoded.length} characters in base64, Nova accepts ${LONGEST_USER_DATA}: have it download the rest`,
  );
}
