import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client } from 'undici';

import type { WireSettings } from '../../packages/providers/sim/control-routes.ts';
import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import type { NodeReadiness } from '../../packages/providers/sim/node.ts';
import type { Latencies } from '../../packages/providers/sim/settings.ts';
import type { PlantedVM, SimVM } from '../../packages/providers/sim/vm.ts';

/** Programs take a moment to listen. */
const START_MS = 60_000;

/** The other end of the control API, for tests and benchmarks. Every method throws what the server refuses. */
export class ControlClient implements AsyncDisposable {
  readonly #client: Client;

  /** `path` of the socket on which it is served. */
  constructor(path: string) {
    this.#client = new Client('http://localhost', { socketPath: path });
  }

  /** Resolves when the server answers; throws what kept it from that for a minute. */
  async answers(): Promise<void> {
    const deadlineMs = performance.now() + START_MS;
    for (;;) {
      try {
        await this.vms();
        return;
      } catch (err) {
        if (performance.now() > deadlineMs) throw err;
        await sleep(200);
      }
    }
  }

  async vms(): Promise<readonly SimVM[]> {
    return (await this.#send('GET', '/vms')) as SimVM[]; // the server is ours
  }

  /** Makes a VM appear without a driver call. */
  async plant(vm: PlantedVM): Promise<SimVM> {
    return (await this.#send('POST', '/vms', vm)) as SimVM; // the server is ours
  }

  /** Makes a VM vanish without a driver call. */
  async vanish(providerID: string): Promise<void> {
    await this.#send('DELETE', `/vms/${encodeURIComponent(providerID)}`);
  }

  async power(providerID: string, power: 'on' | 'off'): Promise<void> {
    await this.#send('POST', `/vms/${encodeURIComponent(providerID)}/power`, { power });
  }

  /** How often each method was called. */
  async calls(): Promise<Readonly<Record<string, number>>> {
    return (await this.#send('GET', '/calls')) as Record<string, number>; // the server is ours
  }

  async resetCalls(): Promise<void> {
    await this.#send('DELETE', '/calls');
  }

  /** Replaces all fault rules. */
  async setFaults(rules: readonly FaultRule[]): Promise<void> {
    await this.#send('PUT', '/faults', rules);
  }

  /** Changes some latencies, or the quota (null: none). */
  async set(change: { latencyMs?: Partial<Latencies>; quota?: number | null }): Promise<void> {
    await this.#send('PATCH', '/settings', change);
  }

  async settings(): Promise<WireSettings> {
    return (await this.#send('GET', '/settings')) as WireSettings; // the server is ours
  }

  async setReadiness(nodeName: string, readiness: NodeReadiness): Promise<void> {
    await this.#send('POST', `/nodes/${encodeURIComponent(nodeName)}/readiness`, { readiness });
  }

  async removeNode(nodeName: string): Promise<void> {
    await this.#send('DELETE', `/nodes/${encodeURIComponent(nodeName)}`);
  }

  /** All VMs vanish, nothing goes wrong any more. */
  async reset(): Promise<void> {
    await this.#send('POST', '/reset');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }

  async #send(method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const response = await this.#client.request({
      method,
      path,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.body.json();
    if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }
}
