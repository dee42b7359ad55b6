import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import axeCore from 'axe-core';
import type { Browser, Page } from 'playwright-core';

import { freePort } from '../../hack/control-plane/ports.ts';
import { bundle } from '../../hack/image/bundle.ts';
import type { TreeNode, TreeObjects } from '../../pkg/fleet/tree.ts';
import { machineDeployments } from '../../pkg/kube/client/resource.ts';
import { machine } from '../builders.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from '../integration/machine-set-world.ts';
import { openBrowser, openWindow } from '../status-page/browser.ts';
import { fleetOf, NOW_MS, workOf } from '../status-page/fleet-of-many.ts';
import { BUNDLE, type Installation, Program, SOURCES } from './program.ts';
import { hourOf, servePage, type Shown, WELL } from '../status-page/served-page.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
}, 300_000);
afterAll(async () => {
  await browser.close();
});

function shown(objects: TreeObjects = fleetOf(4, 12), more: Partial<Shown> = {}): Shown {
  return { objects, work: workOf(objects), process: WELL, history: hourOf(objects.machines.length), ...more };
}

/** What is wrong in a part of the page for those who read it in another way than most, by axe. */
async function barriersIn(tab: Page, part: string): Promise<string[]> {
  await tab.evaluate(axeCore.source);
  return await tab.evaluate(async (selector) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(part: string): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run(selector);
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
  }, part);
}

/** The same as the test command makes, without the test command. */
async function bundledIn(folder: string): Promise<Installation> {
  await bundle(['machinist'], folder);
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n');
  return { root: folder, extension: 'js' };
}

const rows = (tab: Page) => tab.locator('.machines tbody tr');
const namesIn = (tab: Page): Promise<string[]> => rows(tab).locator('td:first-child button').allTextContents();
/** What has focus, by its name. */
const focused = (tab: Page): Promise<string> =>
  tab.evaluate<string>(
    "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent?.trim() ?? ''",
  );
const scrollWidth = (tab: Page): Promise<number> => tab.evaluate<number>('document.documentElement.scrollWidth');

describe('the status page in Chromium', () => {
  test.each(['light', 'dark'] as const)(
    'fits 1440, 800 and 360 pixels, and can be read, in %s',
    async (colorScheme) => {
      await using page = await servePage(shown(fleetOf(2, 6)));
      const { tab, complaints, requests } = await openWindow(browser, page.url, { width: 1440, colorScheme });
      await rows(tab).first().waitFor();

      for (const width of [1440, 800, 360]) {
        await tab.setViewportSize({ width, height: 900 });
        await eventually(async () => expect(await tab.evaluate<number>('innerWidth')).toBe(width));
        const background = await tab.evaluate<string>('getComputedStyle(document.body).backgroundColor');
        expect(await scrollWidth(tab)).toBe(width);
        expect(background).toBe(colorScheme === 'light' ? 'rgb(245, 246, 248)' : 'rgb(14, 18, 23)');
        expect({ width, barriers: await barriersIn(tab, 'html') }).toEqual({ width, barriers: [] });
        await rows(tab).first().locator('button').click();
        await tab.locator('dialog[open]').waitFor();
        // It is modal: nobody reaches what is behind it.
        expect({ width, barriers: await barriersIn(tab, 'dialog[open]') }).toEqual({ width, barriers: [] });
        await tab.keyboard.press('Escape');
        await tab.locator('dialog[open]').waitFor({ state: 'detached' });
      }
      expect(complaints).toEqual([]);
      expect(requests.filter((url) => !url.startsWith(page.url))).toEqual([]);
      await tab.context().close();
    },
  );

  test('shows 2,000 machines a page at a time, and makes only rows anew that have changed', async () => {
    const given = shown(fleetOf(10, 200));
    await using page = await servePage(given);
    const { tab, complaints } = await openWindow(browser, page.url);
    await rows(tab).first().waitFor();
    expect(await tab.locator('#machines-count').textContent()).toBe('2,000');
    expect(await rows(tab).count()).toBe(50);
    expect(await tab.locator('.pager').textContent()).toContain('1–50 of 2,000');
    // Those who need somebody are first.
    expect((await rows(tab).locator('td:nth-child(2)').allTextContents()).slice(0, 3)).toEqual(
      Array(3).fill('TerminatingDrainBlocked'),
    );
    await tab.evaluate(
      `for (const row of document.querySelectorAll('.machines tbody tr')) row.setAttribute('data-old', '')`,
    );

    // The second of the rows, and one that is not shown.
    const changed = given.objects.machines.map((one, i) => {
      if (i !== 600 && i !== 1_999) return one;
      const copy = structuredClone(one);
      copy.metadata.labels = { ...copy.metadata.labels, node: 'another-node' };
      return copy;
    });
    given.objects = { ...given.objects, machines: changed };

    await tab.locator('.machines tbody tr', { hasText: 'another-node' }).waitFor();
    expect(await tab.locator('.machines tbody tr:not([data-old])').count()).toBe(1);
    await tab.getByRole('searchbox', { name: 'Search machines' }).fill('worker-j pending');
    await eventually(async () => expect(await rows(tab).count()).toBe(1));
    expect(await tab.locator('.pager').textContent()).toContain('1–1 of 1');
    await tab.getByRole('searchbox').fill('');
    await tab.getByRole('button', { name: 'Next' }).click();
    expect(await tab.locator('.pager').textContent()).toContain('51–100 of 2,000');
    expect(complaints).toEqual([]);
    await tab.context().close();
  });

  test('shows the facts: rollouts, drains, retries, drivers, leaders, and why machines wait', async () => {
    await using page = await servePage(shown());
    const { tab } = await openWindow(browser, page.url);
    const textOf = async (name: string): Promise<string> =>
      ((await tab.getByRole('region', { name, exact: true }).textContent()) ?? '').replaceAll(/\s+/g, ' ');

    expect(await textOf('Rollouts')).toContain(
      'worker-b4 updated, 12 available of 124 out of 12 new replicas have been updated',
    );
    expect(await textOf('Drains')).toMatch(
      /worker-a-7d9f8-xxxx0blocked2 pods left14m.*PodDisruptionBudget cart currently allows no eviction.*Remaining pods are deleted in 10[56]m/,
    );
    expect(await textOf('Retries at providers')).toContain('worker-a-7d9f8-xxxx1create: ResourceExhausted');
    expect(await textOf('MachineDeployments')).toContain('3 machines need attention');
    expect(await textOf('Manager')).toMatch(
      /machine-controllerleadingfor 4h.*controlreachable.*awsconnected3 calls in progress/,
    );
    expect(await textOf('Machines by phase')).toMatch(/Now: 11 Running, 2 Pending|Now: \d+ Running/);
    expect(await tab.title()).toBe('(6) Machinist · shoot--prod');
    await tab.context().close();
  });

  test('is used with the keyboard alone', async () => {
    await using page = await servePage(shown());
    const { tab } = await openWindow(browser, page.url);
    await rows(tab).first().waitFor();

    await tab.keyboard.press('Tab');
    expect(await focused(tab)).toBe('Skip to machines');
    await tab.keyboard.press('Enter');
    await tab.keyboard.press('Tab');
    expect(await focused(tab)).toBe('Search machines');
    await tab.keyboard.type('worker-a unhealthy');
    await eventually(async () => expect(await rows(tab).count()).toBe(1));
    await tab.keyboard.press('Tab');
    await tab.keyboard.press('Tab');
    expect(await focused(tab)).toBe('Needs attention');
    await tab.keyboard.press('Space');
    expect(await tab.getByRole('button', { name: 'Needs attention' }).getAttribute('aria-pressed')).toBe('true');
    const [name = ''] = await namesIn(tab);
    for (let i = 0; i < 12 && (await focused(tab)) !== name; i++) await tab.keyboard.press('Tab');
    expect(await focused(tab)).toBe(name);
    await tab.keyboard.press('Enter');
    const dialog = tab.getByRole('dialog', { name });
    await dialog.waitFor();
    const story = await dialog.textContent();
    expect(story).toContain('At the health timeout it becomes Failed and is replaced.');
    expect(story).toMatch(/Fails at\S+ \(in [67]m\w*\), by the health timeout/);
    // What a browser does with its address, and tells of it, comes after the keys.
    await tab.waitForURL(({ hash }) => hash === `#machine/${encodeURIComponent(`shoot--prod/${name}`)}`);
    await tab.keyboard.press('Escape');
    await tab.waitForURL(({ hash }) => hash === '');
    expect(await tab.locator('dialog[open]').count()).toBe(0);
    expect(await focused(tab)).toBe(name);

    const plot = tab.getByRole('slider', { name: 'Machines by phase over the last hour' });
    await plot.focus();
    await tab.keyboard.press('Home');
    expect(await plot.getAttribute('aria-valuetext')).toMatch(/^11:00: 48 Running/);
    await tab.keyboard.press('ArrowRight');
    expect(await plot.getAttribute('aria-valuetext')).toMatch(/^11:01: /);
    await tab.context().close();
  });

  test('keeps focus where it is while rows change', async () => {
    const given = shown();
    await using page = await servePage(given);
    const { tab } = await openWindow(browser, page.url);
    const first = rows(tab).first().locator('button');
    await first.waitFor();
    const name = (await first.textContent()) ?? '';
    await first.focus();

    given.objects = {
      ...given.objects,
      machines: given.objects.machines.map((one) => {
        const copy = structuredClone(one);
        copy.metadata.labels = { node: 'changed' };
        return copy;
      }),
    };

    await tab.locator('.machines tbody tr', { hasText: 'changed' }).first().waitFor();
    expect(await focused(tab)).toBe(name);
    await tab.context().close();
  });

  test('is heard as it is seen: landmarks, headings and names of what can be used', async () => {
    await using page = await servePage(shown(fleetOf(1, 4)));
    const { tab } = await openWindow(browser, page.url);
    await rows(tab).first().waitFor();
    const session = await tab.context().newCDPSession(tab);

    const { nodes } = await session.send('Accessibility.getFullAXTree');

    const seen = nodes
      .filter(({ ignored }) => !ignored)
      .map(({ role, name }) => `${String(role?.value)} ${String(name?.value ?? '')}`.trim());
    const wanted = [
      'banner',
      'main',
      'contentinfo',
      'heading Machinist',
      'status',
      'StaticText Live',
      ...['Summary', 'Machines by phase', 'Manager', 'Rollouts', 'Drains', 'MachineDeployments', 'Machines'].flatMap(
        (name) => [`heading ${name}`, `region ${name}`],
      ),
      'table MachineDeployments',
      'table Machines',
      'columnheader Waiting for',
      'searchbox Search machines',
      'slider Machines by phase over the last hour',
      'navigation Pages of machines',
      'image 1 Pending, 1 CrashLoopBackOff, 1 Terminating, 1 Unknown',
      'button worker-a-7d9f8-xxxx0',
    ];
    expect(wanted.filter((one) => !seen.includes(one))).toEqual([]);
    const unnamed = nodes.filter(
      ({ ignored, role, name }) =>
        !ignored && ['button', 'link', 'slider', 'searchbox', 'combobox'].includes(String(role?.value)) && !name?.value,
    );
    expect(unnamed).toEqual([]);
    await tab.context().close();
  });

  const HOSTILE = [
    '<img src=x onerror="document.title=\'pwned\'">',
    '<script>document.title="pwned"</script>',
    '"><svg onload=alert(1)>',
    'javascript:alert(1)',
    '${alert(1)}{{constructor.constructor("alert(1)")()}}',
    '\u202Eetihw\u2066 \u0000 end',
  ];
  test('shows names and messages of others as text, whatever they are', async () => {
    const machines = HOSTILE.map((text, i) =>
      machine((one) => {
        Object.assign(one.metadata, { name: `${i}-${text}`, namespace: text, uid: String(i), labels: { node: text } });
        one.spec.providerID = text;
        one.status.currentStatus = { phase: text as never, lastUpdateTime: text };
        one.status.lastOperation = {
          type: 'Create',
          state: 'Failed',
          errorCode: text,
          description: text,
          lastUpdateTime: text,
        };
      }),
    );
    const [deployment] = fleetOf(1, 1).deployments;
    const deployments = HOSTILE.flatMap((text, i) => {
      if (deployment === undefined) return [];
      const copy = structuredClone(deployment);
      Object.assign(copy.metadata, { name: `${i}-${text}`, namespace: text, uid: `d-${i}` });
      copy.status = {
        ...copy.status,
        conditions: [{ type: 'ReplicaFailure', status: 'True', reason: text, message: text }],
      };
      return [copy];
    });
    const texts = { text: HOSTILE[0] ?? '', since: HOSTILE[1] ?? '' };
    const given = shown(
      { deployments, sets: [], machines },
      {
        work: {
          activities: [],
          retries: HOSTILE.map((text) => ({
            machine: text,
            call: text,
            code: text,
            message: text,
            failures: 1,
            since: text,
            nextAttempt: text,
          })),
          exhausted: HOSTILE.map((text) => ({ machineClass: text, message: text, failures: 1, nextAttempt: text })),
          drains: HOSTILE.map((text) => ({
            machine: text,
            purpose: text,
            since: text,
            message: text,
            isBlocked: true,
            podsDeletedAt: text,
            failures: 0,
            nextAttempt: text,
          })),
        },
        process: {
          process: { ...WELL.process, identity: HOSTILE[0] ?? '', namespace: HOSTILE[1] ?? '' },
          leaders: HOSTILE.map((text) => ({ lease: text, state: 'standing-by', holder: text, trouble: text })),
          clusters: HOSTILE.map((cluster) => ({ cluster, state: 'outage', ...texts })),
          drivers: HOSTILE.map((provider) => ({ provider, state: 'not-connected', running: 1 })),
          checks: HOSTILE.map((name) => ({ name, state: 'failed', detail: name })),
          alerts: HOSTILE.map((alert) => ({ alert, after: alert, runbook: alert, about: [alert] })),
        },
        history: hourOf(3).map(({ at }) => ({ at, phases: Object.fromEntries(HOSTILE.map((text) => [text, 1])) })),
      },
    );
    await using page = await servePage(given);
    const { tab, complaints, requests } = await openWindow(browser, page.url);
    await eventually(async () => expect(await rows(tab).count()).toBe(HOSTILE.length));
    for (const [i] of HOSTILE.entries()) {
      await rows(tab).nth(i).locator('button').click();
      await tab.locator('dialog[open]').waitFor();
      await tab.keyboard.press('Escape');
    }
    await tab.locator('.fleets tbody button').first().click();

    expect(complaints).toEqual([]);
    expect(await tab.title()).toBe(`(${HOSTILE.length}) Machinist · ${HOSTILE[1] ?? ''}`);
    expect(requests.filter((url) => !url.startsWith(page.url))).toEqual([]);
    const made = await tab.evaluate(`({
      images: document.querySelectorAll('img').length,
      scripts: document.querySelectorAll('script').length,
      links: [...document.querySelectorAll('a')].map(({ href }) => new URL(href).protocol),
      handlers: [...document.querySelectorAll('*')].filter((one) => one.getAttributeNames().some((name) => name.startsWith('on'))).length,
    })`);
    expect(made).toEqual({ images: 1, scripts: 1, links: ['http:'], handlers: 0 });
    expect(await scrollWidth(tab)).toBe(1440);
    await tab.context().close();
  });

  test('runs nothing that was not served beside it', async () => {
    await using page = await servePage(shown());
    const { tab, complaints } = await openWindow(browser, page.url);

    // From a timer: what a debugger evaluates itself is not bound by the policy.
    const refused = await tab.evaluate(`new Promise((resolve) => setTimeout(() => {
      const attempts = [
        () => new Function('return 1')(),
        () => { document.body.innerHTML = '<b>x</b>'; },
        () => { document.body.append(Object.assign(document.createElement('script'), { src: 'data:text/javascript,1' })); },
      ];
      resolve(attempts.map((attempt) => {
        try {
          attempt();
          return 'done';
        } catch (err) {
          return err.name;
        }
      }));
    }))`);

    expect(refused).toEqual(['EvalError', 'TypeError', 'TypeError']);
    expect(complaints.filter((one) => /Content Security Policy|TrustedHTML/i.test(one))).not.toEqual([]);
    await tab.context().close();
  });

  test('is in the bundle, and shows of a real cluster what machinist tree shows', async () => {
    await using world = await MachineSetWorld.start({ startMs: 10, stopMs: 10 }, connect());
    await world.createDeployment(3);
    await eventually(() => expect(world.running()).toHaveLength(3), { timeoutMs: 120_000 });
    const folder = await mkdtemp(path.join(tmpdir(), 'machinist-page-'));
    try {
      const installation = BUNDLE === SOURCES ? await bundledIn(folder) : BUNDLE;
      const port = await freePort();
      const cluster = [`--target-kubeconfig=${connect().kubeconfig}`, `--namespace=${world.namespace.name}`];
      const server = [`--port=${port}`, '--address=127.0.0.1', '--status-page'];
      const args = ['run', ...cluster, ...server, '--leader-elect=false', '--controllers=secret'];
      await using program = new Program('machinist', args, { installation });
      await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200), {
        timeoutMs: 120_000,
      });
      const { tab, complaints, requests } = await openWindow(browser, `http://127.0.0.1:${port}/`);
      await eventually(async () => expect(await rows(tab).count()).toBe(3));

      const kubeconfig = `--kubeconfig=${connect().kubeconfig}`;
      const tree = ['tree', '-o', 'json', kubeconfig, '-n', world.namespace.name];
      const told = await Program.run('machinist', tree, { installation });
      const [root] = JSON.parse(told.stdout) as [TreeNode];
      const machines = root.children.flatMap(({ children }) => children);
      expect((await namesIn(tab)).toSorted()).toEqual(machines.map(({ name }) => name).toSorted());
      expect(await tab.locator('.fleets tbody tr').textContent()).toMatch(/^d.*3\/3/);
      expect(requests.filter((url) => url.endsWith('.ts'))).toHaveLength(1);
      await world.patch(machineDeployments, 'd', { spec: { paused: true } });
      await tab.locator('.fleets tbody tr', { hasText: 'Paused: nothing is rolled out' }).waitFor();
      expect(complaints).toEqual([]);

      program.kill('SIGTERM');
      expect((await program.ended()).code).toBe(0);
      await tab.getByRole('alert').filter({ hasText: 'The connection to the manager is lost' }).waitFor();
      await tab.context().close();
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 180_000);

  test('says that data is old in an outage, that a replica stands by, and that the connection is lost', async () => {
    const given = shown();
    const page = await servePage(given);
    const { tab } = await openWindow(browser, page.url);
    const banners = tab.locator('#banners');
    expect(await banners.textContent()).toBe('');

    given.process = {
      ...WELL,
      clusters: [
        {
          cluster: 'target',
          state: 'outage',
          since: new Date(NOW_MS - 600_000).toISOString(),
          text: 'API server of cluster "target" unreachable',
        },
      ],
    };
    await tab
      .getByRole('alert')
      .filter({ hasText: 'API server of cluster "target" unreachable. Data of this cluster may be outdated.' })
      .waitFor();
    expect(await banners.textContent()).toContain('10m ago');
    given.process = {
      ...WELL,
      leaders: WELL.leaders.map((one) => ({ ...one, state: 'standing-by', holder: 'other_1' })),
    };
    given.work = undefined;
    await banners.getByText('This replica is standing by. other_1 leads.').waitFor();
    await tab
      .locator('#drains', { hasText: 'Drains are shown by the leader only: open the page of other_1.' })
      .waitFor();
    await page[Symbol.asyncDispose]();
    await tab.getByRole('alert').filter({ hasText: 'The connection to the manager is lost' }).waitFor();
    expect(await tab.locator('#connection').textContent()).toBe('Connection lost');
    await tab.context().close();
  });
});
