import { ownerText, parseIntent } from './intent.ts';
import type { Port } from './network.ts';
import { isMarkedFor, isServerOf } from './ownership.ts';
import type { MachineOfCloud } from './settings.ts';

interface Deps extends Pick<MachineOfCloud, 'cloud' | 'machine' | 'log'> {
  /** The two tags of the machine's class. */
  readonly marks: readonly string[];
  /** Servers of the machine, by ID. */
  readonly own: ReadonlySet<string>;
}

/**
 * Who uses what was made for a machine: a port, an address, a disk. What is used by a server that is not the machine's is left alone,
 * whatever it says of itself: a server that was taken out of the driver's hands keeps what it runs on.
 *
 * | the server that uses it                              | it is              |
 * |------------------------------------------------------|--------------------|
 * | none, or one that does not exist any more            | the machine's      |
 * | one of the machine                                   | the machine's      |
 * | one of the machine that Nova has kept (SOFT_DELETED) | the machine's: the server is deleted for good |
 * | another one                                          | left alone         |
 */
export class Users {
  readonly #deps: Deps;
  /** What was found out, by ID of the server: for one call of the driver. */
  readonly #others = new Map<string, boolean>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether a server that is not the machine's lives under that ID. */
  async isOther(id: string, signal: AbortSignal): Promise<boolean> {
    if (id === '' || this.#deps.own.has(id)) return false;
    const known = this.#others.get(id);
    if (known !== undefined) return known;
    const isOther = await this.#check(id, signal);
    this.#others.set(id, isOther);
    return isOther;
  }

  /** Of ports those that no other server uses. */
  async freeOf(ports: readonly Port[], signal: AbortSignal): Promise<readonly Port[]> {
    const free: Port[] = [];
    for (const port of ports)
      if (await this.isOther(port.device_id, signal)) this.leave('port', port.id, port.device_id);
      else free.push(port);
    return free;
  }

  /** Whether the port of a floating IP, which may be any, is used by something that is not the machine's. */
  async isOthersPort(floatingIP: string, portID: string, signal: AbortSignal): Promise<boolean> {
    const { cloud, machine } = this.#deps;
    const port = await cloud.network.port(portID, signal);
    if (port === undefined) return false;
    const isUnused = port.device_id === '' && parseIntent(port.description)?.owner === ownerText(machine);
    const isOthers = port.device_id === '' ? !isUnused : await this.isOther(port.device_id, signal);
    if (isOthers) this.leave('floating IP', floatingIP, port.device_id);
    return isOthers;
  }

  leave(kind: 'port' | 'floating IP' | 'volume', id: string, server: string): void {
    const { machine, log } = this.#deps;
    const fields = { machine: `${machine.namespace}/${machine.name}`, kind, id, server };
    log.warn(fields, 'kept a resource that another server uses');
  }

  /** A restored backup is a disk of the machine as well: whoever misses one finds it here. */
  deleted(volume: string): void {
    const { machine, log } = this.#deps;
    log.info({ machine: `${machine.namespace}/${machine.name}`, volume }, 'deleted a volume');
  }

  async #check(id: string, signal: AbortSignal): Promise<boolean> {
    const { cloud, machine, marks } = this.#deps;
    const server = await cloud.compute.server(id, signal);
    if (server === undefined || server.status === 'DELETED') return false;
    const isOwn = isMarkedFor(server, marks, machine) && isServerOf(server, machine, cloud.region);
    if (!isOwn || server.status !== 'SOFT_DELETED') return true;
    await cloud.compute.deleteForGood(id, signal);
    return false;
  }
}
