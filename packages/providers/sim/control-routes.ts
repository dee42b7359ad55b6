import { parseFaultRules } from './faults.ts';
import { DEFAULT_SIM_SETTINGS, type Latencies, type SimSettings } from './settings.ts';
import type { Simulation } from './simulation.ts';
import type { PlantedVM } from './vm.ts';

/** One route of the control API; a `*` in the pattern is its parameter. */
export interface Route {
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';
  readonly pattern: readonly string[];
  /** What it returns is answered as JSON; what it throws is answered as 400 with its message. */
  readonly run: (parameter: string, body: unknown) => unknown;
}

/** Settings as JSON: `quota` null is no limit. */
export interface WireSettings {
  readonly latencyMs: Latencies;
  readonly quota: number | null;
}

/**
 * | route                       | does                                                                      |
 * |-----------------------------|---------------------------------------------------------------------------|
 * | GET /vms                    | lists the VMs                                                             |
 * | POST /vms                   | plants a VM (PlantedVM) and returns it                                    |
 * | DELETE /vms/ID              | the VM vanishes                                                           |
 * | POST /vms/ID/power          | `{"power": "on" or "off"}`                                                |
 * | POST /vms/ID/machine        | `{"uid": "…"}`: the VM is that of a Machine with this UID                 |
 * | GET, DELETE /calls          | counts of driver calls by method; sets them to zero                       |
 * | GET, PUT /faults            | the fault rules; replaces them                                            |
 * | GET, PATCH /settings        | latencies and quota; changes some (WireSettings, each member optional)    |
 * | POST /nodes/NAME/readiness  | `{"readiness": "ready", "not-ready" or "unknown"}`                        |
 * | DELETE /nodes/NAME          | removes the Node                                                          |
 * | POST /reset                 | all VMs vanish; no faults, counts at zero, settings as at the start       |
 */
export function controlRoutes(simulation: Simulation): readonly Route[] {
  const { cloud, driver, faults, nodes } = simulation;
  const initial = driver.settings;
  const route = (method: Route['method'], path: string, run: Route['run']): Route => ({
    method,
    pattern: path.split('/').slice(1),
    run,
  });
  return [
    route('GET', '/vms', () => cloud.all()),
    route('POST', '/vms', (_, body) => plant(simulation, body)),
    route('DELETE', '/vms/*', (id) => existing(id, cloud.remove(id, 'vanished'))),
    route('POST', '/vms/*/power', (id, body) =>
      existing(id, cloud.change(id, { power: oneOf(body, 'power', ['on', 'off']) })),
    ),
    route('POST', '/vms/*/machine', (id, body) => existing(id, cloud.retag(id, text(body, 'uid')))),
    route('GET', '/calls', () => driver.calls),
    route('DELETE', '/calls', () => driver.resetCalls()),
    route('GET', '/faults', () => faults.rules),
    route('PUT', '/faults', (_, body) => faults.set(parseFaultRules(body))),
    route('GET', '/settings', () => toWire(driver.settings)),
    route('PATCH', '/settings', (_, body) => {
      driver.settings = changed(driver.settings, body);
    }),
    route('POST', '/nodes/*/readiness', (name, body) =>
      existing(name, nodes)?.setReadiness(name, oneOf(body, 'readiness', ['ready', 'not-ready', 'unknown'])),
    ),
    route('DELETE', '/nodes/*', (name) => existing(name, nodes)?.remove(name)),
    route('POST', '/reset', () => {
      for (const vm of cloud.all()) cloud.remove(vm.providerID, 'vanished');
      faults.set([]);
      driver.resetCalls();
      driver.settings = initial;
    }),
  ];
}

function plant({ cloud }: Simulation, body: unknown): unknown {
  const planted = record(body) as Partial<PlantedVM>; // checked here
  const { machineName, namespace, className } = planted;
  if (machineName === undefined || namespace === undefined || className === undefined) {
    throw new Error('a VM requires machineName, namespace and className');
  }
  return cloud.plant({ ...planted, machineName, namespace, className });
}

function toWire({ latencyMs, quota }: SimSettings): WireSettings {
  return { latencyMs, quota: quota === Infinity ? null : quota };
}

function changed(settings: SimSettings, body: unknown): SimSettings {
  const change = record(body);
  const latencyMs = { ...settings.latencyMs };
  for (const [name, ms] of Object.entries(record(change['latencyMs'] ?? {}))) {
    if (!Object.hasOwn(DEFAULT_SIM_SETTINGS.latencyMs, name) || typeof ms !== 'number' || !(ms >= 0)) {
      throw new Error(`latencyMs.${name}: unknown, or not a number of milliseconds`);
    }
    Object.assign(latencyMs, { [name]: ms });
  }
  const { quota = toWire(settings).quota } = change;
  if (quota !== null && typeof quota !== 'number') throw new Error('quota: must be a number or null');
  return { latencyMs, quota: quota ?? Infinity };
}

function record(body: unknown): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('the body must be an object');
  return body as Record<string, unknown>; // narrowed above
}

function text(body: unknown, name: string): string {
  const value = record(body)[name];
  if (typeof value !== 'string' || value === '') throw new Error(`${name}: must be a text`);
  return value;
}

function oneOf<T extends string>(body: unknown, name: string, values: readonly T[]): T {
  const value = values.find((known) => known === record(body)[name]);
  if (value === undefined) throw new Error(`${name}: must be one of ${values.join(', ')}`);
  return value;
}

/** What a lookup found. Throws when that is nothing. */
function existing<T>(what: string, found: T | false | undefined): T {
  if (found === false || found === undefined) throw new Error(`${what} does not exist here`);
  return found;
}
