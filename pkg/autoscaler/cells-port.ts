import type { ReadAnnounced } from '../controllers/announced-template.ts';
import type { ServedWorld } from '../controllers/world.ts';
import type { HeldBack } from '../health/held-work.ts';
import { MANAGER_LEASE } from '../kube/leader/names.ts';
import type { CellsService, KnownCells, ServeCells } from '../operator/cells/service.ts';
import { CELL_CLIENT_NAME } from '../operator/config/cells.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import type { ManagerProcess } from '../operator/manager-process.ts';
import type { Operator } from '../operator/operator.ts';
import type { Service } from '../operator/service.ts';
import { answering, authenticationErrorOf, namesOf, refusing } from './answer.ts';
import type { ClientAdmission, ConnectedClient, IncomingCall, RpcHandler } from './grpc-server.ts';
import { callMetrics } from './metrics.ts';
import { AutoscalerPort, type ListenForAutoscalers, overGrpc } from './open-port.ts';
import { ServerError, Status } from './rpc-error.ts';
import { ServedGroups } from './served-groups.ts';
import { Patience } from './patience.ts';

/** What serves cluster-autoscalers of all cells: nothing unless flag `--autoscaler-grpc-address` is set. */
export function autoscalerOfCells(worlds: readonly ServedWorld[], listen: ListenForAutoscalers = overGrpc): ServeCells {
  const announcing = worlds.flatMap(({ announced }) => announced ?? []);
  return (process, cells) => {
    const { autoscaler: config } = process.options.config;
    return config && new CellsAutoscalerService(process, { config, cells, announcing, listen });
  };
}

interface CellsPortOptions {
  readonly config: AutoscalerConfig;
  readonly cells: KnownCells;
  readonly announcing: readonly ReadAnnounced[];
  readonly listen: ListenForAutoscalers;
}

/** A cell that runs here. */
interface Served {
  readonly groups: ServedGroups;
  readonly answer: RpcHandler;
}

/**
 * The port for cluster-autoscalers of many namespaces, open in every replica. The certificate of a client says whose it is, at each call: it is
 * answered from what is that namespace's, so that it can name nothing of another one.
 *
 * | the names of the certificate                     | what happens                                                                   |
 * |--------------------------------------------------|--------------------------------------------------------------------------------|
 * | are those of one namespace, managed here         | its groups answer                                                              |
 * | are those of one namespace, managed by a replica | the connection is refused, and gRPC tries again until it meets that replica    |
 * | are no namespace's, or those of several          | PERMISSION_DENIED                                                              |
 * | are not there, or not certified                  | UNAUTHENTICATED                                                                |
 */
class CellsAutoscalerService implements CellsService {
  readonly name = "the autoscalers' port";
  readonly #process: ManagerProcess;
  readonly #options: CellsPortOptions;
  readonly #served = new Map<string, Served>();
  readonly #refuse: RpcHandler;
  readonly #patience: Patience;
  #port: AutoscalerPort | undefined;

  constructor(process: ManagerProcess, options: CellsPortOptions) {
    const { clock, log } = process.options;
    this.#process = process;
    this.#options = options;
    this.#patience = new Patience(clock);
    const metrics = callMetrics(process.registry);
    this.#refuse = refusing({ clientNames: [], refusalOf: (call) => this.#refusalOf(call), metrics, clock, log });
  }

  async start(): Promise<void> {
    const { config, listen } = this.#options;
    const { clock, log } = this.#process.options;
    const answer: RpcHandler = (method, request, call) => {
      const served = this.#served.get(this.#cellOf(call) ?? '');
      return (served?.answer ?? this.#refuse)(method, request, call);
    };
    const admission: ClientAdmission = (certificate) => this.#elsewhere({ certificate });
    this.#port = await AutoscalerPort.open({ config, listen, answer, admission, clock, log });
  }

  async stop(): Promise<void> {
    await this.#port?.close();
  }

  of(operator: Operator): readonly Service[] {
    const cell = operator.config.clusters.namespace;
    const served = this.#serve(cell, operator);
    return served === undefined ? [] : [this.#serviceOf(cell, served)];
  }

  #serviceOf(cell: string, served: Served): Service {
    return {
      name: this.name,
      lease: MANAGER_LEASE,
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      begin: () => {
        this.#served.set(cell, served);
        served.groups.begin();
      },
      end: async () => {
        await served.groups.end();
        if (this.#served.get(cell) === served) this.#served.delete(cell);
        this.#port?.drop((client) => this.#cellOf(client) === cell);
      },
    };
  }

  #serve(cell: string, operator: Operator): Served | undefined {
    const { cells, announcing } = this.#options;
    const { clock, log } = operator;
    const { autoscaler: config } = operator.config;
    const [target] = operator.under(MANAGER_LEASE).targets.all();
    if (config === undefined || target === undefined) return undefined;
    const groups = new ServedGroups(operator, {
      config,
      target,
      announcing,
      machineControllers: undefined,
      lease: cells.leaseOf(cell),
      held: (): readonly HeldBack[] => operator.catchingUp,
    });
    const answer = answering({
      rpcs: groups.rpcs,
      get clientNames() {
        return cells.clients.namesOf(cell);
      },
      unavailable: () => groups.unavailable(),
      drop: ({ address }) => this.#port?.drop((client) => client.address === address),
      roleFile: this.#process.roleFiles.control,
      metrics: groups.metrics,
      clock,
      log,
    });
    return { groups, answer };
  }

  /** The one namespace whose client this is. */
  #cellOf({ certificate }: Pick<ConnectedClient, 'certificate'>): string | undefined {
    const [cell, ...others] = this.#cellsOf(certificate);
    return others.length === 0 ? cell : undefined;
  }

  #cellsOf(certificate: ConnectedClient['certificate']): readonly string[] {
    return certificate === undefined ? [] : this.#options.cells.clients.cellsOf(namesOf(certificate));
  }

  /** Who is refused is told so here as well as anywhere else. */
  #elsewhere(client: Pick<ConnectedClient, 'certificate'>): ReturnType<ClientAdmission> {
    const { cells } = this.#options;
    const cell = this.#cellOf(client);
    if (cell === undefined) return undefined;
    if (cells.isOurs(cell)) {
      this.#patience.forget(cell);
      return undefined;
    }
    const lease = cells.leaseOf(cell);
    this.#process.options.log.debug(
      { cell, lease },
      'an autoscaler connected to a replica that does not manage its namespace',
    );
    return { reason: elsewhere(lease), afterMs: this.#patience.waitMs(cell) };
  }

  /** Why nothing that runs here answers. */
  #refusalOf(call: IncomingCall): ServerError {
    const { cells } = this.#options;
    const stranger = authenticationErrorOf(call, []);
    const { certificate } = call;
    if (certificate === undefined && stranger !== undefined) return stranger;
    const [cell, ...others] = this.#cellsOf(certificate);
    if (cell === undefined || others.length > 0) return notPermitted(certificate, [cell ?? [], others].flat());
    if (cells.isOurs(cell)) {
      const why = cells.whyRefused(cell) ?? 'it has just been assigned to this process; call again';
      return new ServerError(Status.UNAVAILABLE, `namespace ${cell} is not managed: ${why}`);
    }
    this.#port?.drop((client) => client.address === call.address);
    return new ServerError(Status.UNAVAILABLE, elsewhere(cells.leaseOf(cell)));
  }
}

function elsewhere(lease: string): string {
  return `this process does not hold Lease ${lease}; reconnect to find its holder`;
}

/** Names no namespace: of several, all but one are those of others. */
function notPermitted(certificate: ConnectedClient['certificate'], cells: readonly string[]): ServerError {
  const names = certificate === undefined ? [] : namesOf(certificate).map((name) => JSON.stringify(name));
  const shown = names.join(', ') || 'no name';
  const why =
    cells.length === 0
      ? `none of the namespaces that --cells selects permits it: set annotation ${CELL_CLIENT_NAME} of its namespace`
      : `several namespaces permit it, and a client may have only one: correct annotation ${CELL_CLIENT_NAME} of them, or the certificate`;
  return new ServerError(Status.PERMISSION_DENIED, `the client's certificate is for ${shown}; ${why}`);
}
