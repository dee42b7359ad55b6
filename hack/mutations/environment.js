import { TestEnvironment } from 'jest-environment-node';

/** Jest environment: the first failure in a file says enough, the rest of its tests are skipped. */
export default class FirstFailureEnvironment extends TestEnvironment {
  #hasFailed = false;

  handleTestEvent(event) {
    if (event.name === 'test_done' && event.test.errors.length > 0) this.#hasFailed = true;
    if (event.name === 'test_start' && this.#hasFailed) event.test.mode = 'skip';
  }
}
