import type { RpcName, RpcOutcome, RpcRequest } from '../../../../pkg/autoscaler/grpc-server.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import type { SimulatedProcess } from '../../world/simulated-process.ts';

/** As `grpc_timeout` has it unless told otherwise. */
const TIMEOUT_MS = 5_000;
/** How often a call is made again that reached a process that does not lead. */
const ATTEMPTS = 4;
/** What a process says that does not lead. */
const NOT_LEADING = /does not hold Lease/;
const GAVE_UP = new Error('the client no longer waits');

/** The way of a cluster-autoscaler to the processes of a world, as it is behind a Service. */
export class AutoscalerClient {
  readonly #world: MachinesWorld;
  readonly #random: Random;

  constructor(world: MachinesWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** What a call comes to; undefined when no answer came in time. One that reached the wrong process is made again elsewhere. */
  async call<M extends RpcName>(method: M, request: RpcRequest<M>): Promise<RpcOutcome<M> | undefined> {
    const first = Math.floor(this.#random() * this.#world.processes.running.length);
    for (let attempt = 1; ; attempt++) {
      const { running } = this.#world.processes;
      const outcome = await this.#attempt(running[(first + attempt) % running.length], method, request);
      const isElsewhere = outcome !== undefined && 'code' in outcome && NOT_LEADING.test(outcome.message);
      if (!isElsewhere || attempt === ATTEMPTS) return outcome;
    }
  }

  #attempt<M extends RpcName>(
    process: SimulatedProcess | undefined,
    method: M,
    request: RpcRequest<M>,
  ): Promise<RpcOutcome<M> | undefined> {
    const { time, weather, trace } = this.#world;
    const [isRequestLost, isAnswerLost] = [
      this.#random() < weather.rates.requestLost,
      this.#random() < weather.rates.answerLost,
    ];
    trace.add(`autoscaler to ${process?.identity} ${method} ${JSON.stringify(request)}`);
    return new Promise((resolve) => {
      const gone = new AbortController();
      const untilMs = time.elapsedMs + TIMEOUT_MS;
      const settle = (outcome: RpcOutcome<M> | undefined): void => {
        cancel();
        trace.add(`autoscaler ${method} ${outcome === undefined ? 'not answered' : JSON.stringify(outcome)}`);
        resolve(outcome);
      };
      const cancel = time.schedule(TIMEOUT_MS, () => {
        // The server hears of it as soon as its process hears of anything.
        process?.clock.deliver(() => gone.abort(GAVE_UP));
        settle(undefined);
      });
      if (isRequestLost || process === undefined) return;
      const arrive = async (): Promise<void> => {
        const { answer } = process;
        if (answer === undefined) return;
        const leftMs = (): number => untilMs - time.elapsedMs;
        const call = { address: '10.0.0.1:1', certificate: undefined, signal: gone.signal, leftMs };
        const outcome = await answer(method, request, call);
        if (isAnswerLost) return;
        process.clock.deliver(() =>
          time.schedule(this.#latencyMs(), () => (gone.signal.aborted ? undefined : settle(outcome))),
        );
      };
      time.schedule(this.#latencyMs(), () => process.clock.deliver(() => void arrive()));
    });
  }

  #latencyMs(): number {
    return 0.5 + this.#random() * 12;
  }
}
