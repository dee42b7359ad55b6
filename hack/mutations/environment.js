import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import PlainEnvironment from '../jest-environment.js';

/**
 * Jest environment. The first failure in a file says enough: the rest of its tests are skipped, and those of the project's other files.
 * With `reach` it writes down what a test file runs of `files` instead.
 */
export default class MutationEnvironment extends PlainEnvironment {
  #options;
  #test;
  #session;
  #hasFailed;

  constructor(config, context) {
    super(config, context);
    this.#options = config.projectConfig.testEnvironmentOptions;
    this.#test = context.testPath;
    this.#hasFailed = existsSync(this.#options.failed ?? '');
  }

  async setup() {
    await super.setup();
    if (this.#options.reach === undefined) return;
    this.#session = new Session();
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  async teardown() {
    this.#session?.post('Profiler.takePreciseCoverage', (err, coverage) => {
      if (err !== null) throw err;
      this.#write(coverage.result);
    });
    this.#session?.disconnect();
    await super.teardown();
  }

  handleTestEvent(event) {
    if (event.name === 'test_done' && event.test.errors.length > 0 && this.#options.failed !== undefined) {
      this.#hasFailed = true;
      writeFileSync(this.#options.failed, '');
    }
    if (event.name === 'test_start' && this.#hasFailed) event.test.mode = 'skip';
  }

  #write(scripts) {
    const files = new Set(this.#options.files);
    const ranges = scripts
      .filter(({ url }) => url.startsWith('file:') && files.has(fileURLToPath(url)))
      .map(({ url, functions }) => [fileURLToPath(url), functions.flatMap((one) => one.ranges)]);
    const name = `${createHash('sha256').update(this.#test).digest('hex').slice(0, 16)}.json`;
    writeFileSync(path.join(this.#options.reach, name), JSON.stringify({ test: this.#test, ranges }));
  }
}
