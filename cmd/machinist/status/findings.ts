import { ageOf } from '../../../pkg/fleet/age.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import type { TreeNode } from '../../../pkg/fleet/tree.ts';
import { pendingAlerts, type Sample } from '../../../pkg/fleet/alerts.ts';
import type { CellsInProgress, WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { isRenewed, type ManagerLeases } from '../manager-leases.ts';
import { parseSamples } from './samples.ts';

/** One thing that was checked. `fail`: the installation does not work; `warn`: something needs attention. */
export interface StatusFinding {
  readonly check:
    | 'cluster'
    | 'leaders'
    | 'cells'
    | 'processes'
    | 'versions'
    | 'clusters'
    | 'credentials'
    | 'work'
    | 'permissions'
    | 'drivers'
    | 'zones'
    | 'machines'
    | 'alerts';
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy?: string;
}

/** What a process answered, or why it did not. */
export type ProcessAnswer = {
  /** A pod, or a URL. */
  readonly name: string;
} & (
  | {
      readonly readyz: string;
      readonly metrics: string;
      /** Absent from an older process, and from one that does nothing about Machines. */
      readonly work?: WorkInProgress | undefined;
    }
  | { readonly error: string }
);

/** How many objects are named. */
const NAMED = 3;

export function leaseFindings(
  { leases, elsewhere = [] }: Pick<ManagerLeases, 'leases' | 'elsewhere'>,
  nowMs: number,
): readonly StatusFinding[] {
  if (leases.length === 0) return [noLease(elsewhere)];
  const isLed = leases.some((lease) => isRenewed(lease, nowMs));
  // They may be left of a manager of this namespace alone, which is a cell of another one now.
  const others = isLed || elsewhere.length === 0 ? [] : [managerElsewhere('', elsewhere)];
  return [...leases.map((lease) => leaderFinding(lease, nowMs)), ...others];
}

function leaderFinding(lease: Lease, nowMs: number): StatusFinding {
  const { metadata, spec = {} } = lease;
  const { holderIdentity = '', renewTime, acquireTime } = spec;
  if (holderIdentity === '') return noLeader(`${metadata.name}: no leader; the Lease is not held`);
  const held = `${metadata.name}: ${holderIdentity}`;
  return isRenewed(lease, nowMs)
    ? { check: 'leaders', status: 'ok', detail: `${held} has led for ${ageOf(acquireTime, nowMs)}` }
    : noLeader(`${held} has not renewed the Lease for ${ageOf(renewTime, nowMs)}; there is no leader`);
}

function noLease(elsewhere: readonly string[]): StatusFinding {
  const detail = 'no Lease of a manager found';
  if (elsewhere.length > 0) return managerElsewhere(`${detail} in this namespace; `, elsewhere);
  const remedy =
    'check the namespace (-n, --manager-namespace), and whether the manager is running: kubectl get deployments --all-namespaces';
  return { check: 'leaders', status: 'fail', detail, remedy };
}

/** A manager with cells; `what` is said before. */
function managerElsewhere(what: string, [first = '', ...more]: readonly string[]): StatusFinding {
  return {
    check: 'leaders',
    status: 'fail',
    detail: `${what}a manager of many namespaces has its Leases in namespace ${[first, ...more].join(' and ')}`,
    remedy: `set --manager-namespace=${first}, if this namespace is one of its cells`,
  };
}

function noLeader(detail: string): StatusFinding {
  const remedy = 'check the pods of the manager and their logs; see docs/runbooks/no-leader.md';
  return { check: 'leaders', status: 'fail', detail, remedy };
}

/** What the processes say of themselves at `nowMs`; `own`: the version of this program. */
export function processFindings(
  answers: readonly ProcessAnswer[],
  own: string,
  nowMs: number,
): readonly StatusFinding[] {
  const found = answers.flatMap((answer) =>
    'error' in answer ? [] : [{ ...answer, samples: parseSamples(answer.metrics) }],
  );
  return [
    ...answers.map(reachedFinding),
    ...found.flatMap(({ name, readyz, work }) =>
      // Of each cell it has said more.
      checkFindings(name, work?.cells === undefined ? readyz : readyz.replace(/^\[!\] cells .*$/m, '')),
    ),
    ...(found.length === 0
      ? []
      : [
          versionFinding(
            found.map(({ samples }) => samples),
            own,
          ),
          ...driverFindings(found.flatMap(({ samples }) => samples)),
          ...zoneFindings(found.flatMap(({ samples }) => samples)),
          ...alertFindings(
            found.flatMap(({ samples }) => samples),
            nowMs,
          ),
        ]),
  ];
}

/** What processes with cells say of these. */
export function cellsOf(answers: readonly ProcessAnswer[]): readonly CellsInProgress[] {
  return answers.flatMap((answer) => ('error' in answer ? [] : (answer.work?.cells ?? [])));
}

/** Something that may not be read, so that it was not checked. */
export function refusalFinding(check: StatusFinding['check'], why: string): StatusFinding {
  return { check, status: 'warn', detail: `cannot be read: ${why}`, remedy: OWN_PERMISSIONS };
}

const OWN_PERMISSIONS =
  'ask for permission to get and list Leases, pods, and the objects of machine.sapcloud.io, and to get pods/proxy';

export const NO_PROCESS: StatusFinding = {
  check: 'processes',
  status: 'warn',
  detail: 'no pod of a manager found; drivers, outages, held work and alerts were not checked',
  remedy: 'set --manager-namespace and --selector to those of its pods; if it runs elsewhere, set --url',
};

function reachedFinding(answer: ProcessAnswer): StatusFinding {
  const { name } = answer;
  if ('error' in answer) {
    const remedy =
      'check the pod, your permission to get pods/proxy, and its NetworkPolicy; or use kubectl port-forward and --url';
    return { check: 'processes', status: 'warn', detail: `${name}: no answer: ${answer.error}`, remedy };
  }
  const isReady = !answer.readyz.includes('readyz check failed');
  return isReady
    ? { check: 'processes', status: 'ok', detail: `${name}: ready` }
    : { check: 'processes', status: 'fail', detail: `${name}: not ready`, remedy: 'see the failed checks below' };
}

const LINE = /^\[(?<mark>[-!+])\] (?<name>.+?) (?:ok|failed|degraded|excluded)(?:: (?<detail>.*))?$/;

/** Checks of /readyz that have their own name here, and what to do when they are not as they should be. */
const CHECKS: readonly { readonly name: RegExp; readonly check: StatusFinding['check']; readonly remedy: string }[] = [
  { name: /^clusters$/, check: 'clusters', remedy: 'see docs/runbooks/cluster-outage.md' },
  { name: /^credentials$/, check: 'credentials', remedy: 'see docs/runbooks/credentials-not-loaded.md' },
  { name: /^work$/, check: 'work', remedy: 'see docs/operations/outages.md#held-work' },
  { name: /^caches$/, check: 'processes', remedy: 'check its permissions with: machinist preflight' },
  { name: /^cells$/, check: 'cells', remedy: 'see docs/operations/cells.md#when-a-cell-does-not-run' },
  { name: /^lease /, check: 'leaders', remedy: 'see docs/runbooks/lease-trouble.md' },
];
const NOT_PERMITTED = /not permitted|missing permissions|forbidden/i;

function checkFindings(process: string, readyz: string): StatusFinding[] {
  return readyz.split('\n').flatMap((line): StatusFinding[] => {
    const { mark, name = '', detail = '' } = LINE.exec(line)?.groups ?? {};
    if (mark === undefined) return [];
    const { check = 'processes', remedy = 'see docs/operations/observing.md' } =
      CHECKS.find((one) => one.name.test(name)) ?? {};
    const said = `${process}: ${name}${detail === '' ? '' : `: ${detail}`}`;
    // Who leads is seen from the Leases, and a part that is well need not be shown for each process.
    if (mark === '+' && name === 'clusters') return [{ check, status: 'ok', detail: `${process}: ${detail}` }];
    if (mark === '+') return name === 'work' ? [{ check, status: 'ok', detail: `${process}: no work is held` }] : [];
    if (NOT_PERMITTED.test(detail)) {
      const roles = 'apply the roles in deploy/rbac; machinist preflight lists what is missing';
      return [{ check: 'permissions', status: mark === '-' ? 'fail' : 'warn', detail: said, remedy: roles }];
    }
    return [{ check, status: mark === '-' ? 'fail' : 'warn', detail: said, remedy }];
  });
}

function versionFinding(processes: readonly (readonly Sample[])[], own: string): StatusFinding {
  const running = [...new Set(processes.flatMap((samples) => valuesOf(samples, 'machinist_build_info', 'version')))];
  const detail = `manager ${running.join(' and ') || 'unknown'}, this command ${own}`;
  if (running.length === 1 && running[0] === own) return { check: 'versions', status: 'ok', detail };
  const remedy =
    running.length > 1
      ? 'wait for the rolling update of the manager to finish'
      : 'install the version of the manager; an older command may not know all that it reports';
  return { check: 'versions', status: 'warn', detail, remedy };
}

function driverFindings(samples: readonly Sample[]): readonly StatusFinding[] {
  const drivers = samples.filter(({ name }) => name === 'machinist_driver_up');
  const providers = [...new Set(drivers.map(({ labels }) => labels['provider'] ?? ''))].toSorted();
  return providers.map((provider) => {
    const isUp = drivers.every(({ labels, value }) => labels['provider'] !== provider || value === 1);
    if (isUp) return { check: 'drivers', status: 'ok', detail: `${provider}: connected` };
    const remedy = 'check the driver and its log; see docs/runbooks/driver-down.md';
    return { check: 'drivers', status: 'fail', detail: `${provider}: not connected`, remedy };
  });
}

function zoneFindings(samples: readonly Sample[]): readonly StatusFinding[] {
  const stopped = samples.filter(({ name, value }) => name === 'machinist_zone_stopped' && value === 1);
  const zones = [
    ...new Set(
      stopped.map(
        ({ labels }) =>
          `${labels['zone'] || '(none)'} of ${labels['provider'] ?? ''}${labels['cell'] ? ` for cell ${labels['cell']}` : ''}`,
      ),
    ),
  ];
  if (zones.length === 0) return [{ check: 'zones', status: 'ok', detail: 'no zone is stopped' }];
  return zones.map((zone) => ({
    check: 'zones',
    status: 'warn',
    detail: `zone ${zone}: too many machines are unhealthy; none of them is replaced`,
    remedy: 'see docs/runbooks/zone-stopped.md',
  }));
}

function alertFindings(samples: readonly Sample[], nowMs: number): readonly StatusFinding[] {
  const pending = pendingAlerts(samples, nowMs);
  if (pending.length === 0) return [{ check: 'alerts', status: 'ok', detail: 'no condition of an alert holds' }];
  return pending.map(({ alert, after, runbook, about }) => ({
    check: 'alerts',
    // What may last for hours, such as a drain, is no trouble yet.
    status: after.endsWith('h') ? 'ok' : 'warn',
    detail: `${alert} fires ${after === '0s' ? 'now' : `if this lasts ${after}`}${about.length === 0 ? '' : `: ${listed(about)}`}`,
    remedy: `see docs/runbooks/${runbook}.md`,
  }));
}

/** What the tree says, in one line; or why it could not be read. */
export function machineFindings(roots: readonly TreeNode[] | { readonly error: string }): readonly StatusFinding[] {
  if ('error' in roots) {
    return [refusalFinding('machines', roots.error)];
  }
  const all = roots.flatMap(flat);
  const inTrouble = all.filter(({ attention }) => attention === 'attention');
  const machines = all.filter(({ kind }) => kind === 'Machine');
  if (all.length === 0) {
    return [
      { check: 'machines', status: 'ok', detail: 'there are none in this namespace; another one is set with -n' },
    ];
  }
  const running = machines.filter(({ phase }) => phase === 'Running').length;
  const count = `${running} of ${machines.length} machines are Running`;
  if (inTrouble.length === 0) return [{ check: 'machines', status: 'ok', detail: count }];
  const names = listed(inTrouble.map(({ kind, name }) => `${kind} ${name}`));
  return [{ check: 'machines', status: 'warn', detail: `${count}; attention: ${names}`, remedy: 'machinist tree' }];
}

function flat(node: TreeNode): TreeNode[] {
  return [node, ...node.children.flatMap(flat)];
}

/** The first ones, each once. */
export function listed(names: readonly string[]): string {
  const all = [...new Set(names)];
  const more = all.length - NAMED;
  return `${all.slice(0, NAMED).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function valuesOf(samples: readonly Sample[], name: string, label: string): string[] {
  return samples.flatMap((sample) => (sample.name === name ? [sample.labels[label] ?? ''] : []));
}
