import { appendFileSync } from 'node:fs';

/**
 * Jest reporter: prints `N passed, N failed, N skipped` alone on the last line, and adds the same line to the file named by
 * MACHINIST_TEST_SUMMARY, from which the test command sums its levels. A test file that cannot be loaded counts as a failure.
 */
export default class SummaryReporter {
  onRunComplete(_contexts, results) {
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = results;
    const line = `${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed, ${numPendingTests} skipped`;
    const file = process.env.MACHINIST_TEST_SUMMARY;
    if (file) appendFileSync(file, `${line}\n`);
    process.stdout.write(`${line}\n`);
  }
}
