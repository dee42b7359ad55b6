import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import type { ReflectedInformer } from '../../../pkg/kube/cache/reflected-informer.ts';
import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { events, machineDeployments, machines, machineSets } from '../../../pkg/kube/client/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { CommandCluster, InformerExtras } from '../command-cluster.ts';
import { type ManagerLeases, readManagerLeases } from '../manager-leases.ts';
import { type ManagerProcess, managerProcesses, workOf } from '../manager-processes.ts';
import type { ProcessAnswer } from '../status/findings.ts';
import { readCell } from '../status/read-cell.ts';
import type { TopOptions } from './command.ts';
import type { TopFacts } from './facts.ts';
import { notedSource } from './noted-source.ts';
import { RecentEvents } from './recent-events.ts';
import { Troubles } from './troubles.ts';
import { API_SERVER, MANAGER_PODS } from './view.ts';

/** How often processes are asked what they do, and the server who leads. */
const ASK_EVERY_MS = 2_000;
/** Metrics are long, and pods come and go slowly: they are read at every so-many-th time. */
const SELDOM = 5;
const TIMEOUT_MS = 5_000;
const MOST_EVENTS = 200;
const BY_OBJECT = 'object';

/** What is known of a cluster, kept up to date by watches; processes of the manager are asked every two seconds. */
export class WatchedCluster {
  readonly #cluster: CommandCluster;
  readonly #options: TopOptions;
  readonly #troubles: Troubles;
  readonly #recent = new RecentEvents(MOST_EVENTS);
  readonly #changed: () => void;
  readonly #deployments;
  readonly #sets;
  readonly #machines;
  readonly #events;
  #leases: ManagerLeases = { leases: [] };
  #cell: KubeObject | undefined;
  #processes: readonly ManagerProcess[] = [];
  readonly #metrics = new Map<string, string>();
  #answers: readonly ProcessAnswer[] | undefined;
  #work: readonly WorkInProgress[] = [];
  #asked = 0;

  /** `changed` is called whenever there is something new, often in short succession. */
  constructor(cluster: CommandCluster, options: TopOptions, changed: () => void) {
    this.#cluster = cluster;
    this.#options = options;
    this.#changed = changed;
    this.#troubles = new Troubles(API_SERVER, cluster.now());
    this.#deployments = this.#informer(machineDeployments);
    this.#sets = this.#informer(machineSets);
    this.#machines = this.#informer(machines);
    const fieldSelector = `involvedObject.apiVersion=${GROUP}/v1alpha1`;
    this.#events = this.#informer(
      events,
      { indexes: { [BY_OBJECT]: ({ involvedObject }) => [involvedObject?.uid ?? ''] } },
      { fieldSelector },
    );
    this.#events.onChange((_old, current) => {
      if (current !== undefined) this.#recent.add(current);
    });
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const informers = [this.#deployments, this.#sets, this.#machines, this.#events];
    await Promise.all([...informers.map((one) => one.run(signal)), this.#ask(signal)]);
  }

  facts(): TopFacts {
    const { allNamespaces = false } = this.#options;
    const troubles = this.#troubles.list();
    const isSettled = (what: string, informer: { readonly hasSynced: boolean }): boolean =>
      informer.hasSynced || troubles.some((one) => one.what === what);
    return {
      nowMs: this.#cluster.now(),
      cluster: this.#options.context || this.#cluster.server,
      namespace: allNamespaces ? undefined : this.#cluster.namespace,
      deployments: this.#deployments.list(),
      sets: this.#sets.list(),
      machines: this.#machines.list(),
      events: this.#recent.list(),
      ...this.#leases,
      cell: this.#cell,
      isOfManager: this.#isOfManager,
      answers: this.#answers,
      work: this.#work,
      troubles,
      isComplete: [this.#deployments, this.#sets, this.#machines, this.#events].every((one) =>
        isSettled(one.resource.plural, one),
      ),
    };
  }

  eventsOf(uid: string): readonly Event[] {
    return this.#events.byIndex(BY_OBJECT, uid);
  }

  #informer<T extends KubeObject>(
    resource: Resource<T>,
    extras: InformerExtras<T> = {},
    selection: { readonly fieldSelector?: string } = {},
  ): ReflectedInformer<T> {
    const { allNamespaces = false } = this.#options;
    const where = allNamespaces ? {} : { namespace: this.#cluster.namespace };
    const informer = this.#cluster.informer(
      resource,
      { ...where, ...selection },
      { ...extras, watched: (source) => notedSource(source, (err) => this.#note(resource.plural, err)) },
    );
    informer.onChange(this.#changed);
    return informer;
  }

  /** Who asks in the namespace of the manager asks for all of it. */
  get #isOfManager(): boolean {
    const { managerNamespace = '' } = this.#options;
    return this.#leases.cellLeases !== undefined && ['', this.#cluster.namespace].includes(managerNamespace);
  }

  #note(what: string, err: unknown): void {
    this.#troubles.note(what, err, this.#cluster.now());
    this.#changed();
  }

  async #ask(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await Promise.all([this.#askForLeader(), this.#askProcesses()]);
      this.#asked += 1;
      this.#changed();
      await this.#cluster.sleep(ASK_EVERY_MS, signal).catch(() => undefined);
    }
  }

  /** Also finds out whether the server answers: watches may be silent for a while. */
  async #askForLeader(): Promise<void> {
    try {
      const isSeldom = this.#asked % SELDOM === 0;
      this.#leases = await readManagerLeases(this.#cluster, this.#options, {
        timeoutMs: TIMEOUT_MS,
        elsewhere: isSeldom ? undefined : this.#leases.elsewhere,
      });
      const hasCells = this.#leases.cellLeases !== undefined && !this.#isOfManager;
      if (hasCells && isSeldom) this.#cell = (await readCell(this.#cluster, TIMEOUT_MS)).object;
      this.#note('leases', undefined);
    } catch (err) {
      this.#note('leases', err);
    }
  }

  async #askProcesses(): Promise<void> {
    const isSeldom = this.#asked % SELDOM === 0;
    if (isSeldom) {
      try {
        this.#processes = await managerProcesses(this.#cluster, this.#options, this.#options.selector);
        this.#note(MANAGER_PODS, undefined);
      } catch (err) {
        this.#note(MANAGER_PODS, err);
        return;
      }
    }
    const found = await Promise.all(this.#processes.map(async (one) => await this.#askProcess(one, isSeldom)));
    this.#answers = found.map(({ answer }) => answer);
    this.#work = found.flatMap(({ work }) => (work === undefined ? [] : [work]));
  }

  async #askProcess(
    process: ManagerProcess,
    isSeldom: boolean,
  ): Promise<{ readonly answer: ProcessAnswer; readonly work?: WorkInProgress }> {
    const { name, read } = process;
    try {
      const [readyz, work, metrics = this.#metrics.get(name) ?? ''] = await Promise.all([
        read('/readyz?verbose', TIMEOUT_MS),
        workOf(process, TIMEOUT_MS),
        isSeldom ? read('/metrics', TIMEOUT_MS) : undefined,
      ]);
      this.#metrics.set(name, metrics);
      return { answer: { name, readyz, metrics, work }, ...(work !== undefined && { work }) };
    } catch (err) {
      return { answer: { name, error: (err as Error).message } }; // ApiError, or of a URL
    }
  }
}
