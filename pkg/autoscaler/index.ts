import type { ServedWorld } from '../controllers/world.ts';
import type { HeldBack } from '../health/held-work.ts';
import { MANAGER_LEASE } from '../kube/leader/names.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import type { Operator } from '../operator/operator.ts';
import { roleFiles } from '../operator/preflight/permissions.ts';
import type { Service } from '../operator/service.ts';
import { answering } from './answer.ts';
import { MachineControllers } from './machine-controllers.ts';
import { AutoscalerPort, type ListenForAutoscalers, overGrpc } from './open-port.ts';
import { ServedGroups } from './served-groups.ts';

export type { ListenForAutoscalers } from './open-port.ts';

/** What serves cluster-autoscalers in this process: nothing unless flag `--autoscaler-grpc-address` is set. */
export function autoscaler(
  operator: Operator,
  worlds: readonly ServedWorld[],
  listen: ListenForAutoscalers = overGrpc,
): readonly Service[] {
  const { autoscaler: config, leader } = operator.config;
  if (config === undefined) return [];
  const [target] = operator.under(MANAGER_LEASE).targets.all();
  if (target === undefined) return [];
  const announcing = worlds.flatMap(({ announced }) => announced ?? []);
  const { reader, clock } = operator;
  // Without leader election a Lease that is there nobody may have renewed for years.
  const machineControllers = leader.enabled
    ? new MachineControllers({ reader, namespace: leader.namespace, clock })
    : undefined;
  const lease = `${leader.namespace}/${MANAGER_LEASE}`;
  // What is held waits for the end of an outage, which is told.
  const held = (): readonly HeldBack[] => [];
  const groups = new ServedGroups(operator, { config, target, announcing, machineControllers, lease, held });
  return [new AutoscalerService(operator, { config, groups, listen })];
}

interface ServiceOptions {
  readonly config: AutoscalerConfig;
  readonly groups: ServedGroups;
  readonly listen: ListenForAutoscalers;
}

/**
 * The port for cluster-autoscalers. It is open in every replica; the one that holds the Lease of the owner controllers answers, once its
 * caches have caught up and while no cluster has an outage. The others answer UNAVAILABLE and let the client connect anew, so that it finds
 * the leader behind a Service.
 */
class AutoscalerService implements Service {
  readonly name = "the autoscaler's port";
  readonly lease = MANAGER_LEASE;
  readonly #operator: Operator;
  readonly #options: ServiceOptions;
  #port: AutoscalerPort | undefined;

  constructor(operator: Operator, options: ServiceOptions) {
    this.#operator = operator;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { config, groups, listen } = this.#options;
    const { clock, log } = this.#operator;
    const { leases, clusters, leader } = this.#operator.config;
    const where = { namespace: clusters.namespace, leaseNamespace: leader.namespace };
    const answer = answering({
      rpcs: groups.rpcs,
      clientNames: config.tls && config.clientNames,
      unavailable: () => groups.unavailable(),
      drop: () => this.#port?.drop(),
      roleFile: roleFiles({ leases, ...where, hasCells: false }, []).control,
      metrics: groups.metrics,
      clock,
      log,
    });
    this.#port = await AutoscalerPort.open({ config, listen, answer, clock, log });
  }

  begin(): void {
    this.#options.groups.begin();
  }

  async end(): Promise<void> {
    await this.#options.groups.end();
  }

  async stop(): Promise<void> {
    await this.#port?.close();
  }
}
