// The AWS SDK for Go: conditions, a multipart upload, pages.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

const (
	name     = "awsgo"
	writers  = 16
	keys     = 20
	partSize = 5 << 20
)

var (
	bucket = aws.String(name + "-" + os.Getenv("CLIENTS_RUN"))
	ctx    = context.Background()
	client = s3.New(s3.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL")),
		UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
)

// The code by which the server refuses a call.
func code(err error) string {
	var refusal smithy.APIError
	if errors.As(err, &refusal) {
		return refusal.ErrorCode()
	}
	return fmt.Sprint(err)
}

func equal[T comparable](got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("got %v, wanted %v", got, wanted)
	}
	return nil
}

func content(key string) (string, *string, error) {
	object, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
	if err != nil {
		return "", nil, err
	}
	defer object.Body.Close()
	body, err := io.ReadAll(object.Body)
	return string(body), object.ETag, err
}

// The body of the one conditional put, of one of each writer, that was acknowledged.
func winner(key string, ifMatch, ifNoneMatch *string) (string, error) {
	var (
		together, written sync.WaitGroup
		lock              sync.Mutex
		won, others       []string
	)
	together.Add(writers)
	for number := range writers {
		written.Go(func() {
			body := fmt.Sprintf("%s %d", rand.Text(), number)
			together.Done()
			together.Wait()
			_, err := client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: bucket, Key: &key, Body: strings.NewReader(body),
				IfMatch: ifMatch, IfNoneMatch: ifNoneMatch,
			})
			lock.Lock()
			defer lock.Unlock()
			if err == nil {
				won = append(won, body)
			} else {
				others = append(others, code(err))
			}
		})
	}
	written.Wait()
	for _, refusal := range others {
		if refusal != "PreconditionFailed" && refusal != "ConditionalRequestConflict" {
			return "", fmt.Errorf("a writer was refused with %s", refusal)
		}
	}
	if len(won) != 1 {
		return "", fmt.Errorf("%d writers won %s", len(won), key)
	}
	return won[0], nil
}

func createBucket() error {
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
	return err
}

func oneWinner() error {
	for number := range keys {
		key := fmt.Sprintf("contended/%d", number)
		created, err := winner(key, nil, aws.String("*"))
		if err != nil {
			return err
		}
		found, etag, err := content(key)
		if err = errors.Join(err, equal(found, created)); err != nil {
			return err
		}
		replaced, err := winner(key, etag, nil)
		if err != nil {
			return err
		}
		found, _, err = content(key)
		if err = errors.Join(err, equal(found, replaced)); err != nil {
			return err
		}
	}
	return nil
}

func multipart() error {
	key := aws.String("large")
	body := make([]byte, 3*partSize+1234)
	rand.Read(body)
	begun, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	var parts []types.CompletedPart
	number := int32(0)
	for piece := range slices.Chunk(body, partSize) {
		number++
		part, err := client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: bucket, Key: key, UploadId: begun.UploadId,
			PartNumber: aws.Int32(number), Body: bytes.NewReader(piece),
		})
		if err != nil {
			return err
		}
		parts = append(parts, types.CompletedPart{
			PartNumber: aws.Int32(number), ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32,
		})
	}
	_, err = client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: bucket, Key: key, UploadId: begun.UploadId, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return err
	}
	found, _, err := content(*key)
	return errors.Join(err, equal(found == string(body), true))
}

func pages() error {
	wanted := []string{"list/%/+", "list/a b", "list/ä", "list/\U0010ffff"}
	for _, key := range wanted {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(key)})
		if err != nil {
			return err
		}
	}
	var found []string
	listed := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{
		Bucket: bucket, Prefix: aws.String("list/"), MaxKeys: aws.Int32(1),
	})
	for listed.HasMorePages() {
		page, err := listed.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, object := range page.Contents {
			found = append(found, *object.Key)
		}
	}
	if !slices.Equal(found, wanted) {
		return fmt.Errorf("got %q, wanted %q", found, wanted)
	}
	folders, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Delimiter: aws.String("/")})
	if err != nil {
		return err
	}
	return errors.Join(equal(len(folders.CommonPrefixes), 2), equal(len(folders.Contents), 1))
}

func removeAll() error {
	listed := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: bucket})
	for listed.HasMorePages() {
		page, err := listed.NextPage(ctx)
		if err != nil {
			return err
		}
		var objects []types.ObjectIdentifier
		for _, object := range page.Contents {
			objects = append(objects, types.ObjectIdentifier{Key: object.Key})
		}
		removed, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: bucket, Delete: &types.Delete{Objects: objects},
		})
		if err != nil {
			return err
		}
		if err = equal(len(removed.Errors), 0); err != nil {
			return err
		}
	}
	_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	return err
}

func main() {
	steps := []struct {
		what string
		run  func() error
	}{
		{"create a bucket", createBucket},
		{fmt.Sprintf("%d writers create %d keys if absent, then compare and set: one winner each", writers, keys), oneWinner},
		{"15 MB by a multipart upload that creates the object, and back", multipart},
		{"pages of a list, with and without a delimiter", pages},
		{"delete everything in one request a page, and the bucket", removeAll},
	}
	failed := 0
	for _, step := range steps {
		if err := step.run(); err != nil {
			failed = 1
			reason := strings.Join(strings.Fields(err.Error()), " ")
			fmt.Printf("FAILED %s %s: %.400s\n", name, step.what, reason)
		} else {
			fmt.Printf("ok %s %s\n", name, step.what)
		}
	}
	os.Exit(failed)
}
