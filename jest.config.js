/** Tests run the very bytes that Node runs: type stripping only, no compiler. */
export default {
  testEnvironment: 'node',
  injectGlobals: false,
  extensionsToTreatAsEsm: ['.ts'],
  testMatch: ['<rootDir>/{cmd,pkg,test,hack}/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.demo/'],
  coverageProvider: 'v8',
  workerIdleMemoryLimit: '512MB',
  transform: { '^.+\\.ts$': '<rootDir>/hack/jest-strip-types.js' },
  reporters: ['default', '<rootDir>/hack/summary-reporter.js'],
};
